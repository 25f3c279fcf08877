/**
 * The rules between the records of a log. The writer asserts them and the reader checks them, so a
 * log that was written can be read.
 *
 * The reader needs them because a record's type is not covered by the checksum: a flipped bit can
 * turn an entry into a state or the reverse, and the result may decode, but it does not fit the
 * records before it. (One case remains: a state of term 2 whose vote is an id below 2^53, as one in
 * 2,000 is, looks like an empty entry; the next entry then shows it.)
 *
 * A state's term may be below that of the last entry: a crash can lose the state of a batch and
 * keep its entries.
 */
import { raftpb } from "@quorate/proto";

/** What the rules read of an entry. */
type CheckedEntry = Pick<raftpb.Entry, "type" | "term" | "index"> & {
  readonly data: { readonly length: number };
};

/**
 * Checks a log record by record. `entry` and `state` return the problem with a record, or undefined
 * after adding it.
 */
export class LogRules {
  /** Index and term of the last entry or of a snapshot beyond it; the term is 0 while unknown. */
  lastIndex: number;
  #lastTerm = 0;
  #stateTerm = 0;
  #commit = 0;

  /**
   * @param lastIndex the last index before the first record: 0, or where an earlier segment ended.
   */
  constructor(lastIndex: number) {
    this.lastIndex = lastIndex;
  }

  entry(entry: CheckedEntry): string | undefined {
    const { type, term, index, data } = entry;
    if (type < 0 || type > raftpb.EntryType.EntryConfChangeV2)
      return `entry ${index} has an unknown type ${type}`;
    if (type === raftpb.EntryType.EntryConfChange && data.length === 0)
      return `entry ${index} changes the configuration to nothing`;
    if (index < 1 || term < 1) return `an entry has index ${index} and term ${term}`;
    if (index > this.lastIndex + 1) return `entry ${index} follows entry ${this.lastIndex}`;
    if (index <= this.#commit)
      return `entry ${index} would replace a committed one (commit is ${this.#commit})`;
    if (index === this.lastIndex + 1 && term < this.#lastTerm)
      return `entry ${index} has term ${term}, the one before has ${this.#lastTerm}`;
    this.lastIndex = index;
    this.#lastTerm = term;
    return undefined;
  }

  /**
   * @param opens the state is the first record of a log that is read from a later segment on: its
   * committed entries are in earlier segments.
   */
  state(state: raftpb.HardState, opens = false): string | undefined {
    const { term, commit } = state;
    if (opens) this.lastIndex = Math.max(this.lastIndex, commit);
    if (term < 1) return `a state has term ${term}`;
    if (term < this.#stateTerm) return `the term goes back from ${this.#stateTerm} to ${term}`;
    if (commit < this.#commit)
      return `the commit index goes back from ${this.#commit} to ${commit}`;
    if (commit > this.lastIndex)
      return `the commit index is ${commit}, the last entry ${this.lastIndex}`;
    this.#stateTerm = term;
    this.#commit = commit;
    return undefined;
  }

  /** A snapshot mark beyond the last entry replaces all entries before it. */
  snapshot(index: number, term: number): void {
    if (index <= this.lastIndex) return;
    this.lastIndex = index;
    this.#lastTerm = term;
  }
}
