/**
 * Looks at a log from outside, without changing it. For offline tools, and for the choice of a
 * snapshot before the log is opened.
 */
import type { Disk } from "@quorate/host";
import { raftpb, walpb } from "@quorate/proto";
import { WalDamageError } from "./errors.ts";
import { RecordType } from "./format.ts";
import { readWal } from "./reader.ts";
import { replay } from "./replay.ts";

/** What a log holds. */
export interface WalSummary {
  readonly segments: readonly string[];
  readonly records: number;
  readonly metadata: Uint8Array;
  readonly hardState: raftpb.HardState | undefined;
  /** Index of the last entry, or of a snapshot beyond it. */
  readonly lastIndex: number;
  /** All snapshot marks, oldest first. */
  readonly snapshots: readonly walpb.Snapshot[];
  /** Where the good records of the last segment end. */
  readonly endOffset: number;
  /** Bytes of a torn write behind that place; the next `Wal.open` cuts them off. */
  readonly tornBytes: number;
}

/**
 * Reads all that is there, and throws a WalDamageError at the first place that is broken; a
 * WalError NotFound if there is no log.
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
 * The marks of snapshots that a member may start from: those not beyond what the last state calls
 * committed. Oldest first. Entries are not looked into, beyond their checksums: opening the log
 * does that.
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
