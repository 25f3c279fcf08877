/**
 * What a member's log holds on its disk, while no process uses it: which entries, and whether the
 * member is to be removed by one.
 */
import type { Disk } from "@quorate/host";
import { raftpb, walpb } from "@quorate/proto";
import { RecordType, readWal, validSnapshotMarks } from "@quorate/wal";

export interface LogEnd {
  readonly lastIndex: number;
  /**
   * The term of an entry; undefined for one that the log does not reach, or that its beginning
   * stands for.
   */
  termOf(index: number): number | undefined;
  /** Entries up to here are behind the log's beginning, and were committed. */
  readonly beginsAt: number;
  /** Whether an entry takes this member out of the cluster. */
  removes(memberId: bigint): boolean;
}

/**
 * Reads the log; undefined if there is none that can be read. A snapshot mark beyond the commit
 * index of the last state does not count: the member had not accepted that snapshot when it
 * stopped, and starts from what it had before.
 */
export function logEndOf(disk: Disk, dir: string): LogEnd | undefined {
  const entries = new Map<number, raftpb.Entry>();
  let lastIndex = 0;
  let beginsAt = 0;
  try {
    const accepted = new Set(validSnapshotMarks(disk, dir).map(({ index }) => index));
    for (const { type, data } of readWal(disk, dir)) {
      if (type === RecordType.Snapshot) {
        const { index } = walpb.Snapshot.decode(data);
        if (!accepted.has(index)) continue;
        beginsAt = Math.max(beginsAt, index);
        lastIndex = Math.max(lastIndex, index);
      } else if (type === RecordType.Entry) {
        const entry = raftpb.Entry.decode(data);
        entries.set(entry.index, entry);
        // What it replaces ends with it.
        lastIndex = entry.index;
      }
    }
  } catch {
    return undefined;
  }
  const removes = (memberId: bigint) =>
    [...entries.values()].some(({ index, type, data }) => {
      if (index > lastIndex || type !== raftpb.EntryType.EntryConfChange) return false;
      const change = raftpb.ConfChange.decode(data);
      return (
        change.type === raftpb.ConfChangeType.ConfChangeRemoveNode && change.nodeId === memberId
      );
    });
  return {
    lastIndex,
    beginsAt,
    termOf: (index) => (index > lastIndex ? undefined : entries.get(index)?.term),
    removes,
  };
}
