/**
 * A hard state whose only news is the commit index. It travels with the next append to the log,
 * because no member depends on it being durable, but for the last voter (LastVoter).
 */
import { raftpb } from "@quorate/proto";
import { confChangeOf, isConfChange } from "@quorate/raft";
import type { Wal } from "@quorate/wal";

export class UnwrittenCommit {
  readonly #wal: Wal;
  /** The hard state that waits for an append; undefined for none. */
  hardState: raftpb.HardState | undefined;

  constructor(wal: Wal) {
    this.#wal = wal;
  }

  /** Writes it now, for callers that are about to refer to it in the log. */
  write(): void {
    const hardState = this.hardState;
    this.hardState = undefined;
    if (hardState !== undefined) this.#wal.append(hardState, []);
  }
}

const { ConfChangeRemoveNode } = raftpb.ConfChangeType;

/** Where the log of a start is not looked at: so many voters may become one within it. */
const MAX_VOTERS_AT_START = 3;

/**
 * Whether the removal of a member that leaves one voter is committed only in memory.
 *
 * A commit index alone is written lazily (loop.ts): a member that forgets it learns it again from a
 * quorum of the configuration that it knows. Where a removal leaves one voter, that needs the
 * removed member, which ends when it hears from the voter that the removal is committed
 * (membership/departure.ts). A voter that forgets the commit then has no quorum for good. So it
 * sends and applies nothing with that commit before the commit is on its disk.
 */
export class LastVoter {
  /** Indexes of removals that are not known to be applied, ascending. */
  #removals: number[] = [];
  /** The commit is durable up to here. */
  #savedTo: number;
  /** Up to this index the log is that of the start, whose entries are not known here. */
  readonly #startedTo: number;

  /** @param commit durable up to here @param lastIndex of the log */
  constructor(commit: number, lastIndex: number) {
    this.#savedTo = commit;
    this.#startedTo = lastIndex;
  }

  /** Entries are added to the log; the first may replace one, and all after it. */
  wrote(entries: readonly raftpb.Entry[]): void {
    const [first] = entries;
    if (first === undefined) return;
    if (this.#removals.length > 0)
      this.#removals = this.#removals.filter((index) => index < first.index);
    for (const entry of entries) if (isRemoval(entry)) this.#removals.push(entry.index);
  }

  /**
   * Whether the commit has to be durable before it is sent and applied.
   * @param commit the new commit index @param applied the last index that is applied
   * @param voters of the configuration as applied
   */
  mustSave(commit: number, applied: number, voters: number): boolean {
    if (commit <= this.#savedTo) return false;
    if (this.#savedTo < this.#startedTo && voters <= MAX_VOTERS_AT_START) return true;
    if (this.#removals.length === 0) return false;
    this.#removals = this.#removals.filter((index) => index > applied);
    const committed = this.#removals.filter((index) => index <= commit);
    return committed.some((index) => index > this.#savedTo) && voters - committed.length <= 1;
  }

  /** The commit is durable up to an index. */
  saved(commit: number): void {
    this.#savedTo = Math.max(this.#savedTo, commit);
  }
}

function isRemoval(entry: raftpb.Entry): boolean {
  if (!isConfChange(entry)) return false;
  try {
    const changes = confChangeOf(entry)?.changes ?? [];
    return changes.some(({ type }) => type === ConfChangeRemoveNode);
  } catch {
    // One that does not decode changes nothing.
    return false;
  }
}
