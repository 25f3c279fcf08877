/** The entries of a log that a dump shows. */
import type { Disk } from "@quorate/host";
import { etcdserverpb, raftpb, WireError, walpb } from "@quorate/proto";
import { RecordType, readWal, WalDamageError, type WalRecord } from "@quorate/wal";

/** The content of a log after an index. */
export interface LogContent {
  readonly metadata: Uint8Array;
  readonly state: raftpb.HardState;
  /** The entries after the index, in order, without those that later ones replaced. */
  readonly entries: readonly raftpb.Entry[];
  /** The damage, if there is any; the entries before it are present. */
  readonly damage: WalDamageError | undefined;
}

/** The newest snapshot record at or below the commit index; undefined if there is none. */
export function newestMark(disk: Disk, dir: string): walpb.Snapshot | undefined {
  const marks: walpb.Snapshot[] = [];
  let commit = 0;
  untilDamage(dir, readWal(disk, dir), ({ type, data }) => {
    if (type === RecordType.Snapshot) marks.push(walpb.Snapshot.decode(data));
    else if (type === RecordType.State) ({ commit } = raftpb.HardState.decode(data));
  });
  return marks.findLast(({ index }) => index <= commit);
}

/** Reads the log after index `after`. Throws WalError if the log begins later. */
export function readLog(disk: Disk, dir: string, after: number): LogContent {
  let metadata = new Uint8Array(0);
  let state = raftpb.HardState.create();
  let entries: raftpb.Entry[] = [];
  const damage = untilDamage(dir, readWal(disk, dir, after), ({ type, data }) => {
    if (type === RecordType.Metadata) metadata = data as Uint8Array<ArrayBuffer>;
    else if (type === RecordType.State) state = raftpb.HardState.decode(data);
    else if (type === RecordType.Entry) {
      const entry = raftpb.Entry.decode(data);
      if (entry.index <= after) {
        // An entry replaces the earlier one at its index and all behind that.
        entries = [];
        return;
      }
      // After a received snapshot, entries start again behind a gap; earlier ones are void.
      const [first = entry] = entries;
      const position = entry.index - first.index;
      if (position < 0 || position > entries.length) entries = [];
      else entries.length = position;
      entries.push(entry);
    }
  });
  return { metadata, state, entries, damage };
}

/**
 * Calls `take` with each record up to the end or the first damage. Returns the damage.
 */
function untilDamage(
  dir: string,
  records: Iterable<WalRecord>,
  take: (record: WalRecord) => void,
): WalDamageError | undefined {
  try {
    for (const record of records) decoding(dir, record, () => take(record));
    return undefined;
  } catch (error) {
    if (error instanceof WalDamageError) return error;
    throw error;
  }
}

/** Runs a decoder. Throws WalDamageError with the record's offset if it fails. */
export function decoding<T>(dir: string, { segment, offset }: WalRecord, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw new WalDamageError(
      dir,
      segment.name,
      offset,
      `the record cannot be decoded: ${error.message}`,
    );
  }
}

/**
 * The ids of the log's member and cluster; "???" if its metadata are not a member's.
 */
export function logIds(
  metadata: Uint8Array,
  shown: (id: bigint) => string,
): { readonly node: string; readonly cluster: string } {
  try {
    const { NodeID, ClusterID } = etcdserverpb.Metadata.decode(metadata);
    return { node: shown(NodeID), cluster: shown(ClusterID) };
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return { node: "???", cluster: "???" };
  }
}
