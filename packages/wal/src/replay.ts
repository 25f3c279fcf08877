/** Combines the records of a log into entries, hard state and snapshot marks. */
import type { Disk } from "@quorate/host";
import { raftpb, walpb } from "@quorate/proto";
import { WalDamageError, WalError } from "./errors.ts";
import { RecordType } from "./format.ts";
import { assert } from "./invariants.ts";
import { readWal, type WalEnd, type WalRecord } from "./reader.ts";
import { LogRules } from "./rules.ts";

/** The content of a log from a snapshot on. */
export interface Replay {
  readonly metadata: Uint8Array;
  /** The last hard state, or undefined if none was written. */
  readonly hardState: raftpb.HardState | undefined;
  /**
   * Entries after `from`, in order, without those that later ones replaced; none without `from`.
   * Their data are views that stay valid.
   */
  readonly entries: raftpb.Entry[];
  /** All snapshot marks, as written. */
  readonly snapshots: walpb.Snapshot[];
  readonly end: WalEnd;
  /** The rules after all records. */
  readonly rules: LogRules;
  /** Number of records read. */
  readonly records: number;
}

/** Decodes a record's data; throws WireError or RangeError if it cannot be decoded. */
function decodeSnapshot(data: Uint8Array): walpb.Snapshot {
  if (data.length === 0) throw new RangeError("the snapshot mark is empty");
  return walpb.Snapshot.decode(data);
}

/**
 * Reads the log in `dir` from the snapshot with index `from.index` on; or, without `from`, the
 * whole log, keeping no entries.
 * Throws WalDamageError if a record is broken or does not follow from those before it; WalError
 * SnapshotNotFound or SnapshotMismatch if the log has no mark of that snapshot, NotFound if it
 * lacks entries after it.
 */
export function replay(disk: Disk, dir: string, from: walpb.Snapshot | undefined): Replay {
  const reader = readWal(disk, dir, from?.index);
  let rules: LogRules | undefined;
  let hardState: raftpb.HardState | undefined;
  const entries: raftpb.Entry[] = [];
  const snapshots: walpb.Snapshot[] = [];
  let matched = false;
  let records = 0;
  /** The term of the log's own entry at `from.index`, if it was read. */
  let termAtFrom: number | undefined;

  const take = (record: WalRecord): string | undefined => {
    rules ??= new LogRules(Math.max(0, record.segment.index - 1));
    switch (record.type) {
      case RecordType.Entry: {
        const entry = raftpb.Entry.decode(record.data);
        const problem = rules.entry(entry);
        if (problem || !from) return problem;
        const position = entry.index - from.index - 1;
        if (position > entries.length) {
          // The rules accepted it, so a later snapshot replaces the missing entries.
          throw new WalError(
            "NotFound",
            dir,
            `the log goes from entry ${from.index + entries.length} to ${entry.index}`,
          );
        }
        // The entry replaces those with its index and above; one at or before the snapshot replaces
        // all.
        entries.length = Math.max(0, position);
        if (position >= 0) entries.push(entry);
        else if (position === -1) termAtFrom = entry.term;
        return undefined;
      }
      case RecordType.State: {
        const state = raftpb.HardState.decode(record.data);
        const problem = rules.state(state, hardState === undefined && record.segment.sequence > 0);
        if (!problem) hardState = state;
        return problem;
      }
      case RecordType.Snapshot: {
        const snapshot = decodeSnapshot(record.data);
        rules.snapshot(snapshot.index, snapshot.term);
        snapshots.push(snapshot);
        if (from && snapshot.index === from.index) {
          if (snapshot.term !== from.term) {
            throw new WalError(
              "SnapshotMismatch",
              dir,
              `snapshot ${from.index} has term ${snapshot.term} in the log, not ${from.term}`,
            );
          }
          matched = true;
          // A received snapshot replaces a log that differs from it, with all entries that follow
          // there (Raft paper, figure 13).
          if (termAtFrom !== undefined && termAtFrom !== from.term) entries.length = 0;
        }
        return undefined;
      }
      default:
        return undefined;
    }
  };

  for (;;) {
    const next = reader.next();
    if (next.done) {
      if (from && !matched)
        throw new WalError(
          "SnapshotNotFound",
          dir,
          `the log has no mark of snapshot ${from.index}`,
        );
      assert(rules !== undefined, "WAL-6");
      return {
        metadata: next.value.metadata,
        hardState,
        entries,
        snapshots,
        end: next.value,
        rules,
        records,
      };
    }
    const record = next.value;
    records++;
    let problem: string | undefined;
    try {
      problem = take(record);
    } catch (error) {
      if (error instanceof WalError) throw error;
      problem = `the record cannot be decoded: ${(error as Error).message}`;
    }
    if (problem) throw new WalDamageError(dir, record.segment.name, record.offset, problem);
  }
}
