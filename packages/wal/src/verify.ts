/**
 * Reads a log without changing it: for offline tools, and to choose a snapshot before the log is
 * opened.
 */
import type { Disk } from "@quorate/host";
import { etcdserverpb, raftpb, WireError, walpb } from "@quorate/proto";
import { WalDamageError } from "./errors.ts";
import { RecordType } from "./format.ts";
import { readWal } from "./reader.ts";
import { replay } from "./replay.ts";

/** The content of a log. */
export interface WalSummary {
  readonly segments: readonly string[];
  readonly records: number;
  readonly metadata: Uint8Array;
  readonly hardState: raftpb.HardState | undefined;
  /** Index of the last entry, or of a snapshot beyond it. */
  readonly lastIndex: number;
  /** All snapshot marks, oldest first. */
  readonly snapshots: readonly walpb.Snapshot[];
  /** The end of the valid records in the last segment. */
  readonly endOffset: number;
  /** Bytes of a torn write at that offset; the next `Wal.open` cuts them off. */
  readonly tornBytes: number;
}

/**
 * Reads the whole log. Throws WalDamageError at the first broken record, and WalError NotFound if
 * there is no log.
 */
export function verifyWal(disk: Disk, dir: string): WalSummary {
  const { metadata, hardState, snapshots, end, rules, records } = replay(disk, dir, undefined);
  return {
    segments: end.segments.map((segment) => segment.name),
    records,
    metadata,
    hardState,
    lastIndex: rules.lastIndex,
    snapshots,
    endOffset: end.offset,
    tornBytes: end.tornBytes,
  };
}

/**
 * The marks of snapshots that a member may start from: those not beyond the commit index of the
 * last state. Oldest first. Verifies the entries' checksums but not their content, which opening
 * the log does.
 */
export function validSnapshotMarks(disk: Disk, dir: string): walpb.Snapshot[] {
  const snapshots: walpb.Snapshot[] = [];
  let commit = 0;
  for (const { segment, offset, type, data } of readWal(disk, dir)) {
    try {
      if (type === RecordType.Snapshot) snapshots.push(walpb.Snapshot.decode(data));
      else if (type === RecordType.State) commit = raftpb.HardState.decode(data).commit;
    } catch (error) {
      throw new WalDamageError(
        dir,
        segment.name,
        offset,
        `the record cannot be decoded: ${(error as Error).message}`,
      );
    }
  }
  return snapshots.filter((snapshot) => snapshot.index <= commit);
}

/**
 * The id of the member whose log this is, also where the log is damaged; undefined where the damage
 * comes before it.
 */
export function memberOf(disk: Disk, dir: string): bigint | undefined {
  try {
    for (const { type, data } of readWal(disk, dir))
      if (type === RecordType.Metadata) return etcdserverpb.Metadata.decode(data).NodeID;
  } catch (error) {
    if (!(error instanceof WalDamageError || error instanceof WireError)) throw error;
  }
  return undefined;
}
