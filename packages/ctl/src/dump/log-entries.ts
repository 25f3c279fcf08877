/** The entries of a log that a dump shows. */
import type { Disk } from "@quorate/host";
import { etcdserverpb, raftpb, WireError, walpb } from "@quorate/proto";
import { RecordType, readWal, WalDamageError, type WalRecord } from "@quorate/wal";

/** What a log has from a point on. */
export interface LogContent {
  readonly metadata: Uint8Array;
  readonly state: raftpb.HardState;
  /** Those after the point, in order, without those that later ones replaced. */
  readonly entries: readonly raftpb.Entry[];
  /** Where the log is damaged; what comes before that place is here all the same. */
  readonly damage: WalDamageError | undefined;
}

/** The newest snapshot mark that is not beyond what was committed; undefined if there is none. */
export function newestMark(disk: Disk, dir: string): walpb.Snapshot | undefined {
  const marks: walpb.Snapshot[] = [];
  let commit = 0;
  untilDamage(dir, readWal(disk, dir), ({ type, data }) => {
    if (type === RecordType.Snapshot) marks.push(walpb.Snapshot.decode(data));
    else if (type === RecordType.State) ({ commit } = raftpb.HardState.decode(data));
  });
  return marks.findLast(({ index }) => index <= commit);
}

/** Reads what is after entry `after`. Throws WalError where the log does not reach back so far. */
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
        // It replaces itself and all that follows it.
        entries = [];
        return;
      }
      // Where a snapshot was received, entries begin anew behind a gap; what was before it counts
      // no more.
      const position = entries.length === 0 ? 0 : entry.index - entries[0].index;
      if (position < 0 || position > entries.length) entries = [];
      else entries.length = position;
      entries.push(entry);
    }
  });
  return { metadata, state, entries, damage };
}

/**
 * Hands all records to `take`, to the end or to the first place that is damaged, which it gives.
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

/** Runs what decodes a record. Throws WalDamageError with its place where it cannot be decoded. */
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
 * The ids of the member and the cluster that a log belongs to; "???" where its metadata are not
 * those of a member.
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
