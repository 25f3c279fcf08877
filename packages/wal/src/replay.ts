/** Combines the records of a log into entries, hard state and snapshot marks. */
import type { Disk } from "@quorate/host";
import { raftpb, walpb } from "@quorate/proto";
import { WalDamageError, WalError } from "./errors.ts";
import { LogRules, RecordType } from "./format.ts";
import { assert } from "./invariants.ts";
import { readWal, type WalEnd, type WalRecord } from "./reader.ts";

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
  const content = new Content(dir, from);
  for (;;) {
    const next = reader.next();
    if (next.done) return content.end(next.value);
    const record = next.value;
    let problem: string | undefined;
    try {
      problem = content.add(record);
    } catch (error) {
      if (error instanceof WalError) throw error;
      problem = `the record cannot be decoded: ${(error as Error).message}`;
    }
    if (problem) throw new WalDamageError(dir, record.segment.name, record.offset, problem);
  }
}

/** The content of a log as its records are read. */
class Content {
  readonly #dir: string;
  readonly #from: walpb.Snapshot | undefined;
  #rules: LogRules | undefined;
  #hardState: raftpb.HardState | undefined;
  readonly #entries: raftpb.Entry[] = [];
  readonly #snapshots: walpb.Snapshot[] = [];
  #matched = false;
  #records = 0;
  /** The term of the log's own entry at `from.index`, if it was read. */
  #termAtFrom: number | undefined;

  constructor(dir: string, from: walpb.Snapshot | undefined) {
    this.#dir = dir;
    this.#from = from;
  }

  /** Adds a record; returns the problem with it, if any. Throws if it cannot be decoded. */
  add({ type, data, segment }: WalRecord): string | undefined {
    this.#records++;
    this.#rules ??= new LogRules(Math.max(0, segment.index - 1));
    switch (type) {
      case RecordType.Entry:
        return this.#addEntry(this.#rules, raftpb.Entry.decode(data));
      case RecordType.State: {
        const state = raftpb.HardState.decode(data);
        const opens = this.#hardState === undefined && segment.sequence > 0;
        const problem = this.#rules.state(state, opens);
        if (!problem) this.#hardState = state;
        return problem;
      }
      case RecordType.Snapshot:
        this.#addSnapshot(this.#rules, decodeSnapshot(data));
        return undefined;
      default:
        return undefined;
    }
  }

  #addEntry(rules: LogRules, entry: raftpb.Entry): string | undefined {
    const from = this.#from;
    const entries = this.#entries;
    const problem = rules.entry(entry);
    if (problem || !from) return problem;
    const position = entry.index - from.index - 1;
    if (position > entries.length) {
      // The rules accepted it, so a later snapshot replaces the missing entries.
      const text = `the log goes from entry ${from.index + entries.length} to ${entry.index}`;
      throw new WalError("NotFound", this.#dir, text);
    }
    // The entry replaces those with its index and above; one at or before the snapshot replaces
    // all.
    entries.length = Math.max(0, position);
    if (position >= 0) entries.push(entry);
    else if (position === -1) this.#termAtFrom = entry.term;
    return undefined;
  }

  #addSnapshot(rules: LogRules, snapshot: walpb.Snapshot): void {
    const from = this.#from;
    rules.snapshot(snapshot.index, snapshot.term);
    this.#snapshots.push(snapshot);
    if (!from || snapshot.index !== from.index) return;
    if (snapshot.term !== from.term) {
      const text = `snapshot ${from.index} has term ${snapshot.term} in the log, not ${from.term}`;
      throw new WalError("SnapshotMismatch", this.#dir, text);
    }
    this.#matched = true;
    // A received snapshot replaces a log that differs from it, with all entries that follow there
    // (Raft paper, figure 13).
    if (this.#termAtFrom !== undefined && this.#termAtFrom !== from.term) this.#entries.length = 0;
  }

  /** The content after the last record. @throws WalError SnapshotNotFound */
  end(end: WalEnd & { readonly metadata: Uint8Array }): Replay {
    if (this.#from && !this.#matched) {
      const text = `the log has no mark of snapshot ${this.#from.index}`;
      throw new WalError("SnapshotNotFound", this.#dir, text);
    }
    const rules = this.#rules;
    assert(rules !== undefined, "WAL-6");
    return {
      metadata: end.metadata,
      hardState: this.#hardState,
      entries: this.#entries,
      snapshots: this.#snapshots,
      end,
      rules,
      records: this.#records,
    };
  }
}
