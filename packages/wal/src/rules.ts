/**
 * What must hold between the records of a log. The writer asserts it and the reader checks it, so a
 * log that was written can be read.
 *
 * The reader needs it because a record's type is outside of the checksum: a flipped bit can turn an
 * entry into a state or the other way round, and what comes out may decode. It does not fit to what
 * stands before it, though. (One case is left: a state of term 2 whose vote is an id below 2^53,
 * which one in 2,000 is, looks like an empty entry; that shows only when the next entry comes.)
 *
 * A state's term may be below that of the last entry: a crash can take the state of a batch and
 * leave its entries.
 */
import { raftpb } from "@quorate/proto";

/**
 * Follows a log record by record. `entry` and `state` give what is wrong, or undefined and take the
 * record in.
 */
export class LogRules {
  /**
   * Index and term of the last entry or of a snapshot beyond it; the term is 0 while it is unknown.
   */
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

  entry(entry: raftpb.Entry): string | undefined {
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
   * @param opens the state opens a log that is read from a later segment on: what it calls
   * committed stands in earlier ones.
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

  /** A snapshot mark beyond the last entry takes the place of all entries before it. */
  snapshot(index: number, term: number): void {
    if (index <= this.lastIndex) return;
    this.lastIndex = index;
    this.#lastTerm = term;
  }
}
