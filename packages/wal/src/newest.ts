/**
 * Reads a log once for a start: its content from the newest snapshot that a member may start from,
 * which is known only at the log's end.
 *
 *     mark 0   entries 1 .. 10,000   mark 10,000   entries 10,001 .. 10,400   state: commit 10,390
 *              held, then dropped                  held; decoded at the end
 *
 * Entries are held as they are stored, from the newest mark on that the states so far allow. What
 * this does not expect, such as entries that a received snapshot replaced, is left to the two
 * passes of `validSnapshotMarks` and `replay`.
 */
import type { Disk } from "@quorate/host";
import { EMPTY, Reader, raftpb, walpb } from "@quorate/proto";
import { LogRules, RecordType } from "./format.ts";
import { readWal, type WalEnd, type WalRecord } from "./reader.ts";
import { type Replay, replay } from "./replay.ts";
import { validSnapshotMarks } from "./verify.ts";

/** The content of a log from its newest snapshot on. */
export interface NewestReplay extends Replay {
  /** The snapshot's mark; index 0 for a log that begins with no snapshot. */
  readonly from: walpb.Snapshot;
}

const START: walpb.Snapshot = { index: 0, term: 0, confState: undefined };

/** Reads the log in `dir`. Throws as `validSnapshotMarks` and `replay` do. */
export function replayNewest(disk: Disk, dir: string): NewestReplay {
  return replayOnce(disk, dir) ?? replayTwice(disk, dir);
}

function replayTwice(disk: Disk, dir: string): NewestReplay {
  const marks = validSnapshotMarks(disk, dir);
  const from = marks[marks.length - 1] ?? START;
  return { ...replay(disk, dir, from), from };
}

/** Reads the log once; undefined where it is not as plain as most are. */
export function replayOnce(disk: Disk, dir: string): NewestReplay | undefined {
  const reader = readWal(disk, dir);
  const content = new HeldContent();
  for (;;) {
    const next = reader.next();
    try {
      if (next.done) return content.end(next.value);
      if (!content.add(next.value)) return undefined;
    } catch {
      // A record that does not decode: the two passes say which, and whether it matters.
      return undefined;
    }
  }
}

/** Type, term, index and the length of the data of an entry, without an object for each. */
class EntryHead {
  type = 0;
  term = 0;
  index = 0;
  readonly data = { length: 0 };
  readonly #reader = new Reader(EMPTY);

  /**
   * False unless the fields are there in the order in which every writer has them. Throws WireError
   * for malformed ones.
   */
  read(bytes: Uint8Array): boolean {
    const reader = this.#reader;
    reader.reset(bytes);
    if (reader.tag() !== 0x08) return false;
    this.type = reader.uint64();
    if (reader.tag() !== 0x10) return false;
    this.term = reader.uint64();
    if (reader.tag() !== 0x18) return false;
    this.index = reader.uint64();
    this.data.length = 0;
    // An entry of a new term has no data.
    if (reader.pos < reader.end) {
      if (reader.tag() !== 0x22) return false;
      const start = reader.content();
      this.data.length = reader.pos - start;
    }
    return this.index > 0 && reader.pos === reader.end;
  }
}

class HeldContent {
  #rules: LogRules | undefined;
  #hardState: raftpb.HardState | undefined;
  readonly #head = new EntryHead();
  /** Entries behind `#fromIndex`, as they are stored, and their terms. */
  #held: Uint8Array[] = [];
  #terms: number[] = [];
  #fromIndex = 0;
  readonly #snapshots: walpb.Snapshot[] = [];
  /** The first mark that no state so far allows. */
  #nextMark = 0;
  #records = 0;

  /** Adds a record; false if this is a log for two passes. */
  add({ type, data, segment }: WalRecord): boolean {
    this.#records++;
    if (this.#rules === undefined) {
      this.#fromIndex = Math.max(0, segment.index - 1);
      this.#rules = new LogRules(this.#fromIndex);
    }
    switch (type) {
      case RecordType.Entry:
        return this.#addEntry(this.#rules, data);
      case RecordType.State: {
        const state = raftpb.HardState.decode(data);
        const opens = this.#hardState === undefined && segment.sequence > 0;
        if (this.#rules.state(state, opens) !== undefined) return false;
        this.#hardState = state;
        return this.#drop();
      }
      case RecordType.Snapshot:
        return this.#addMark(this.#rules, data);
      default:
        return true;
    }
  }

  #addEntry(rules: LogRules, data: Uint8Array): boolean {
    const head = this.#head;
    if (!head.read(data) || rules.entry(head) !== undefined) return false;
    const position = head.index - this.#fromIndex - 1;
    if (position < 0 || position > this.#held.length || head.index <= this.#lastMarked)
      return false;
    this.#held.length = position;
    this.#terms.length = position;
    this.#held.push(data);
    this.#terms.push(head.term);
    return true;
  }

  #addMark(rules: LogRules, data: Uint8Array): boolean {
    if (data.length === 0) return false;
    const mark = walpb.Snapshot.decode(data);
    // Its entry is in a segment before the oldest one; a later mark has to follow.
    if (this.#snapshots.length === 0 && mark.index < this.#fromIndex) return true;
    if (mark.index <= this.#lastMarked) return false;
    const position = mark.index - this.#fromIndex - 1;
    // A mark of its own entry, or of the place at which the log begins; not a received snapshot's.
    const isOwn =
      position < 0 ? mark.index === this.#fromIndex : this.#terms[position] === mark.term;
    if (!isOwn) return false;
    rules.snapshot(mark.index, mark.term);
    this.#snapshots.push(mark);
    return this.#drop();
  }

  get #lastMarked(): number {
    return this.#snapshots[this.#snapshots.length - 1]?.index ?? -1;
  }

  /** Drops the entries before the newest mark that is committed. */
  #drop(): boolean {
    const commit = this.#hardState?.commit ?? 0;
    const marks = this.#snapshots;
    while ((marks[this.#nextMark]?.index ?? Number.POSITIVE_INFINITY) <= commit) this.#nextMark++;
    const mark = marks[this.#nextMark - 1];
    if (mark === undefined || mark.index <= this.#fromIndex) return true;
    const count = mark.index - this.#fromIndex;
    if (count > this.#held.length) return false;
    this.#held.splice(0, count);
    this.#terms.splice(0, count);
    this.#fromIndex = mark.index;
    return true;
  }

  /** The content; undefined where the newest mark's entries are not all held. */
  end(end: WalEnd): NewestReplay | undefined {
    const from = this.#snapshots[this.#nextMark - 1];
    const rules = this.#rules;
    if (from === undefined || rules === undefined || from.index !== this.#fromIndex)
      return undefined;
    const entries = this.#held.map((data) => raftpb.Entry.decode(data));
    return {
      from,
      metadata: end.metadata,
      hardState: this.#hardState,
      entries,
      snapshots: this.#snapshots,
      end,
      rules,
      records: this.#records,
    };
  }
}
