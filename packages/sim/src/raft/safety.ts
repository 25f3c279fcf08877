/**
 * What has to hold between machines, looked at from outside after every step (paper, figure 3, and
 * thesis, section 6.4):
 *
 *   SAFE-1 election safety          at most one leader a term
 *   SAFE-2 leader append-only       a leader's log only grows while it leads
 *   SAFE-3 log matching             an entry of one index and term is the same everywhere, and so
 *                                   is all before it
 *   SAFE-4 leader completeness      an entry committed in a term is in the log of every leader of a
 *                                   later term
 *   SAFE-5 state machine safety     what is applied at an index is applied everywhere at that index
 *   SAFE-6 reads                    a read's index is not below what anyone knew to be committed
 *                                   when it was asked for
 *   SAFE-7 votes                    a member grants one vote a term, whatever crashes
 *   SAFE-8 durability               only what is durable here is applied here
 */
import { defined, raftpb, toLatin1 } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { violate } from "../base/violation.ts";

interface View {
  role: string;
  term: number;
  commit: number;
  /** Terms by index, from `first`. */
  terms: number[];
}

interface CommittedEntry {
  readonly term: number;
  /** The term in which it became committed. */
  readonly byTerm: number;
}

interface AppliedEntry {
  readonly content: string;
  readonly hash: number;
}

/** Terms stay far below this in any run. */
const TERM_SPAN = 100_000;

export class RaftSafety {
  readonly #leaders = new Map<number, bigint>();
  readonly #leaderLogs: { term: number; id: bigint; terms: number[] }[] = [];
  readonly #views = new Map<bigint, View>();
  /** Of each (index, term): the term before it, and what it holds. */
  readonly #previousTerms = new Map<number, number>();
  readonly #contents = new Map<number, string>();
  readonly #committed: CommittedEntry[] = [];
  readonly #applied: AppliedEntry[] = [{ content: "", hash: 0 }];
  readonly #votes = new Map<string, bigint>();
  readonly #reads = new Map<string, number>();

  /** The highest index that some member knew to be committed. */
  get maxCommitted(): number {
    return Math.max(0, this.#committed.length - 1);
  }

  /** How many terms had a leader. */
  get elections(): number {
    return this.#leaders.size;
  }

  /** The hash of the state machine after index. */
  hashAt(index: number): number {
    return this.#applied[index].hash;
  }

  /** A member has started or stopped. */
  forget(id: bigint): void {
    this.#views.delete(id);
  }

  /** Looks at a member after anything happened to it. */
  check(raft: Raft): void {
    const before = this.#views.get(raft.id);
    const terms = this.#checkLog(raft, before);
    const role = raft.role;
    const term = raft.term;
    if (before !== undefined && term < before.term)
      violate("SAFE-1", `${raft.id}: term fell from ${before.term} to ${term}`);
    if (role === "leader") {
      const known = this.#leaders.get(term);
      if (known !== undefined && known !== raft.id)
        violate("SAFE-1", `${known} and ${raft.id} lead in term ${term}`);
      if (known === undefined) this.#elected(raft, terms);
    }
    this.#checkCommit(raft, before?.commit ?? 0);
    this.#views.set(raft.id, { role, term, commit: raft.commitIndex, terms });
  }

  #checkLog(raft: Raft, before: View | undefined): number[] {
    const first = raft.firstIndex;
    const last = raft.lastIndex;
    const terms: number[] = before?.terms ?? [];
    const leading =
      before?.role === "leader" && raft.role === "leader" && before.term === raft.term;
    if (leading && last < terms.length - 1)
      violate("SAFE-2", `${raft.id} led and lost ${last + 1} to ${terms.length - 1}`);
    let previous = termAt(raft, first - 1);
    for (let index = first; index <= last; index++) {
      const term = termAt(raft, index);
      if (terms[index] !== term) {
        if (leading && terms[index] !== undefined)
          violate("SAFE-2", `${raft.id} led and changed ${index}`);
        terms[index] = term;
      }
      const key = index * TERM_SPAN + term;
      const known = this.#previousTerms.get(key);
      if (known === undefined) this.#previousTerms.set(key, previous);
      else if (known !== previous)
        violate(
          "SAFE-3",
          `${raft.id}: ${index} of term ${term} follows terms ${known} and ${previous}`,
        );
      previous = term;
    }
    terms[first - 1] = termAt(raft, first - 1);
    terms.length = last + 1;
    return terms;
  }

  #elected(raft: Raft, terms: readonly number[]): void {
    this.#leaders.set(raft.term, raft.id);
    this.#leaderLogs.push({ term: raft.term, id: raft.id, terms: [...terms] });
    for (let index = raft.firstIndex - 1; index < this.#committed.length; index++) {
      const entry = this.#committed[index];
      if (entry !== undefined && entry.byTerm < raft.term && terms[index] !== entry.term) {
        violate(
          "SAFE-4",
          `${raft.id} leads in term ${raft.term} without ${index} of term ${entry.term}, committed in ${entry.byTerm}`,
        );
      }
    }
  }

  #checkCommit(raft: Raft, before: number): void {
    const commit = raft.commitIndex;
    if (commit < before) violate("SAFE-5", `${raft.id}: commit fell from ${before} to ${commit}`);
    for (let index = Math.max(before + 1, raft.firstIndex - 1); index <= commit; index++) {
      const term = termAt(raft, index);
      const known = this.#committed[index];
      if (known !== undefined) {
        if (known.term !== term)
          violate(
            "SAFE-5",
            `${raft.id} commits ${index} of term ${term}, known is term ${known.term}`,
          );
        continue;
      }
      if (raft.role !== "leader" && index > 0 && term > 1)
        violate("SAFE-5", `${raft.id} commits ${index} before any leader`);
      this.#committed[index] = { term, byTerm: raft.term };
      for (const leader of this.#leaderLogs) {
        // The log of a leader may start after index: that was committed then.
        if (
          leader.term > raft.term &&
          leader.terms[index] !== undefined &&
          leader.terms[index] !== term
        ) {
          violate(
            "SAFE-4",
            `${raft.id} commits ${index} in term ${raft.term}, which ${leader.id} of term ${leader.term} has differently`,
          );
        }
        if (leader.term > raft.term && leader.terms.length <= index) {
          violate(
            "SAFE-4",
            `${raft.id} commits ${index} in term ${raft.term}, which ${leader.id} of term ${leader.term} does not have`,
          );
        }
      }
    }
  }

  /** Entries on their way to a disk: the content of an index and term is the same everywhere. */
  written(id: bigint, entries: readonly raftpb.Entry[]): void {
    for (const entry of entries) {
      const key = entry.index * TERM_SPAN + entry.term;
      const content = `${entry.type} ${toLatin1(entry.data)}`;
      const known = this.#contents.get(key);
      if (known === undefined) this.#contents.set(key, content);
      else if (known !== content)
        violate("SAFE-3", `${id}: ${entry.index} of term ${entry.term} differs`);
    }
  }

  /** An entry is applied to a state machine with this hash; returns the hash after it. */
  apply(id: bigint, entry: raftpb.Entry, hash: number): number {
    const content = `${entry.term} ${entry.type} ${toLatin1(entry.data)}`;
    const known = this.#applied[entry.index];
    const before = this.#applied[entry.index - 1];
    if (before === undefined || before.hash !== hash)
      violate("SAFE-5", `${id} applies ${entry.index} to another state`);
    if (known !== undefined) {
      if (known.content !== content)
        violate("SAFE-5", `${id} applies another entry at ${entry.index}`);
      return known.hash;
    }
    let next = hash ^ 0x811c9dc5;
    for (let i = 0; i < content.length; i++)
      next = Math.imul(next ^ content.charCodeAt(i), 0x01000193);
    this.#applied[entry.index] = { content, hash: next };
    return next;
  }

  /**
   * A member hands entries to its state machine while its disk holds up to `durable` (with these
   * terms).
   */
  handedOut(
    id: bigint,
    committed: readonly raftpb.Entry[],
    durableTerm: (index: number) => number | undefined,
  ): void {
    for (const { index, term } of committed) {
      if (durableTerm(index) !== term)
        violate(
          "SAFE-8",
          `${id} applies ${index} of term ${term}, its disk has term ${durableTerm(index)}`,
        );
    }
  }

  /** A message leaves a member. */
  sent(message: raftpb.Message): void {
    if (message.type !== raftpb.MessageType.MsgVoteResp || message.reject) return;
    const key = `${message.from} ${message.term}`;
    const known = this.#votes.get(key);
    if (known === undefined) this.#votes.set(key, message.to);
    else if (known !== message.to)
      violate(
        "SAFE-7",
        `${message.from} votes for ${known} and ${message.to} in term ${message.term}`,
      );
  }

  /** A read is asked for. */
  asked(context: string): void {
    this.#reads.set(context, this.maxCommitted);
  }

  /** A read is confirmed. */
  answered(context: string, index: number): void {
    const least = this.#reads.get(context);
    if (least === undefined)
      violate("SAFE-6", `response to a read that was not requested: ${context}`);
    if (index < least)
      violate("SAFE-6", `read ${context} gets ${index}, ${least} was known to be committed`);
  }
}

function termAt(raft: Raft, index: number): number {
  return defined(raft.termOf(index), "the term of an entry in the log");
}
