/**
 * The promises of the agreement itself (figure 3 of the Raft paper), looked at in the machines of
 * all members after every step:
 *
 *   LOG-1 election safety      one leader a term
 *   LOG-2 leader append-only   a leader replaces and drops no entry of its log
 *   LOG-3 log matching         entries of one index and term are the same, and so are those before
 *                              them
 *   LOG-4 leader completeness  what was committed before its term is in a leader's log
 *   LOG-5 committed once       no two members commit different entries at one index
 *   LOG-6 never back           a running member's term and commit index do not fall
 *   LOG-7 nothing impossible   no member refuses another's message as one that no member sends
 *   LOG-8 one change at a time a leader adds a configuration change only when it has applied all
 *   before it
 *   LOG-9 honest matches       a new leader counts no entry as another member's; who follows it has
 *                              the entry up to which it is counted, whenever that commits something
 *
 * An entry's content is seen when a member is given it to write, before anybody else can know of it
 * there.
 */
import { crc32c, idToHex, raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { Violation, violate } from "../base/violation.ts";

/** An entry by index and term, as the first member had it. */
interface KnownEntry {
  readonly digest: number;
  /** The term of the entry before it; undefined where that was compacted. */
  readonly previousTerm: number | undefined;
  readonly isConfChange: boolean;
  readonly by: string;
}

interface Committed {
  readonly term: number;
  /** The least term in which a member was seen to know of it. */
  inTerm: number;
  readonly by: string;
}

/** A member while one process of it runs. */
interface Watched {
  readonly name: string;
  readonly raft: Raft;
  term: number;
  commit: number;
  isLeader: boolean;
  /** The end of the log, for a leader. */
  last: number;
  /** The last entry that a leader of that term was given to write. */
  written: { term: number; index: number };
}

/** Looks at the machines of all members that run. */
export class RaftCheck {
  readonly #watched = new Map<string, Watched>();
  readonly #leaders = new Map<number, string>();
  /** By index, then by term. */
  readonly #entries: (Map<number, KnownEntry> | undefined)[] = [];
  /** By index. */
  readonly #committed: (Committed | undefined)[] = [];
  #all: Watched[] = [];
  /** Entries and elections that were looked at. */
  readonly counts = { entries: 0, leaders: 0 };

  /** A process of a member has made its machine. */
  watch(name: string, raft: Raft, fail: (error: unknown) => void): void {
    const watched: Watched = {
      name,
      raft,
      term: raft.term,
      commit: 0,
      isLeader: false,
      last: raft.lastIndex,
      written: { term: 0, index: 0 },
    };
    this.#watched.set(name, watched);
    this.#all = [...this.#watched.values()];
    const step = raft.step.bind(raft);
    raft.step = (message) => {
      const refused = step(message);
      if (refused !== undefined) {
        fail(
          new Violation(
            `LOG-7: ${name} refuses a message of ${idToHex(message.from)}, which has said nothing but what it may: ${refused}`,
          ),
        );
      }
      return refused;
    };
    const ready = raft.ready.bind(raft);
    raft.ready = () => {
      const given = ready();
      try {
        this.#written(watched, given.entries);
      } catch (error) {
        fail(error);
      }
      return given;
    };
  }

  /** A member's process has ended. */
  forget(name: string): void {
    this.#watched.delete(name);
    this.#all = [...this.#watched.values()];
  }

  /**
   * Members are lost for good, with what they alone knew. @param lastApplied entries up to here are
   * not lost
   */
  forgetLost(lastApplied: number): void {
    this.#leaders.clear();
    if (this.#entries.length > lastApplied + 1) this.#entries.length = lastApplied + 1;
    if (this.#committed.length > lastApplied + 1) this.#committed.length = lastApplied + 1;
  }

  /** After every step: all members. Throws a Violation. */
  look(): void {
    for (const watched of this.#all) {
      const { raft } = watched;
      const { term, commitIndex } = raft;
      const isLeader = raft.role === "leader";
      const isUnchanged =
        term === watched.term && commitIndex === watched.commit && isLeader === watched.isLeader;
      if (isUnchanged && (!isLeader || raft.lastIndex === watched.last)) continue;
      this.#changed(watched, term, commitIndex, isLeader);
    }
  }

  #changed(watched: Watched, term: number, commitIndex: number, isLeader: boolean): void {
    const { name, raft } = watched;
    if (term < watched.term)
      violate("LOG-6", `${name} goes from term ${watched.term} back to ${term}`);
    if (commitIndex < watched.commit)
      violate("LOG-6", `${name}'s commit index falls from ${watched.commit} to ${commitIndex}`);
    const { lastIndex } = raft;
    if (isLeader) {
      if (watched.isLeader && term === watched.term) {
        if (lastIndex < watched.last)
          violate(
            "LOG-2",
            `${name} leads in term ${term}, and its log ends at ${lastIndex}, not ${watched.last}`,
          );
      } else this.#elected(watched, term);
    }
    if (isLeader && commitIndex > watched.commit) this.#compareMatches(watched, term);
    for (let index = Math.max(watched.commit + 1, raft.firstIndex); index <= commitIndex; index++)
      this.#commit(watched, index, term);
    watched.term = term;
    watched.commit = commitIndex;
    watched.isLeader = isLeader;
    watched.last = lastIndex;
  }

  #elected({ name, raft }: Watched, term: number): void {
    const known = this.#leaders.get(term);
    if (known !== undefined && known !== name)
      violate("LOG-1", `${known} and ${name} lead in term ${term}`);
    if (known === undefined) this.counts.leaders++;
    this.#leaders.set(term, name);
    for (const { id, match } of raft.status().progress)
      if (id !== raft.id && match > 0)
        violate(
          "LOG-9",
          `${name} begins to lead in term ${term} and counts entry ${match} as that of ${idToHex(id)}, which acknowledged none`,
        );
    for (let index = this.#committed.length - 1; index >= raft.firstIndex; index--) {
      const committed = this.#committed[index];
      if (committed === undefined || committed.inTerm >= term) continue;
      const own = raft.termOf(index);
      if (own === committed.term) continue;
      const what =
        own === undefined ? `its log ends at ${raft.lastIndex}` : `it has one of term ${own}`;
      violate(
        "LOG-4",
        `${name} leads in term ${term} without entry ${index} of term ${committed.term}, committed before: ${what}`,
      );
    }
  }

  /** LOG-9: who follows a leader has what the leader counts it for. */
  #compareMatches({ name, raft }: Watched, term: number): void {
    for (const { id, match } of raft.status().progress) {
      const other = this.#all.find((one) => one.raft.id === id);
      if (
        other === undefined ||
        other.raft === raft ||
        other.raft.term !== term ||
        match < other.raft.firstIndex
      )
        continue;
      const wanted = raft.termOf(match);
      const own = other.raft.termOf(match);
      if (wanted === undefined || own === wanted) continue;
      const what =
        own === undefined ? `ends at ${other.raft.lastIndex}` : `has one of term ${own} there`;
      violate(
        "LOG-9",
        `${name} leads in term ${term} and counts entry ${match} of term ${wanted} as ${other.name}'s, whose log ${what}`,
      );
    }
  }

  /** LOG-8: a leader adds a configuration change only when it has applied all before it. */
  #addedConfChange({ name, raft }: Watched, index: number): void {
    for (let at = raft.appliedIndex + 1; at < index; at++) {
      const term = raft.termOf(at);
      if (term === undefined || this.#entries[at]?.get(term)?.isConfChange !== true) continue;
      violate(
        "LOG-8",
        `${name} adds a configuration change at ${index} in term ${raft.term}, and that at ${at} is not applied`,
      );
    }
  }

  #commit({ name, raft }: Watched, index: number, inTerm: number): void {
    const term = raft.termOf(index);
    if (term === undefined) return;
    const known = this.#committed[index];
    if (known === undefined) {
      while (this.#committed.length < index) this.#committed.push(undefined);
      this.#committed[index] = { term, inTerm, by: name };
      return;
    }
    if (known.term !== term)
      violate(
        "LOG-5",
        `${name} commits ${index} of term ${term}, ${known.by} that of term ${known.term}`,
      );
    if (inTerm < known.inTerm) known.inTerm = inTerm;
  }

  /** LOG-2 and LOG-3: a member is about to write entries. */
  #written(watched: Watched, entries: readonly raftpb.Entry[]): void {
    if (entries.length === 0) return;
    const { name, raft } = watched;
    const [first] = entries;
    const { written } = watched;
    if (raft.role === "leader") {
      const { term } = raft;
      if (written.term === term && first.index <= written.index) {
        violate(
          "LOG-2",
          `${name} leads in term ${term} and writes entry ${first.index} again, after ${written.index}`,
        );
      }
      watched.written = { term, index: entries[entries.length - 1].index };
    }
    let previousTerm = raft.termOf(first.index - 1);
    for (const entry of entries) {
      this.counts.entries++;
      const digest = crc32c(entry.type, entry.data);
      const isConfChange = entry.type !== raftpb.EntryType.EntryNormal;
      let terms = this.#entries[entry.index];
      if (terms === undefined) {
        while (this.#entries.length < entry.index) this.#entries.push(undefined);
        this.#entries[entry.index] = terms = new Map();
      }
      const known = terms.get(entry.term);
      if (known === undefined)
        terms.set(entry.term, { digest, previousTerm, isConfChange, by: name });
      else {
        const what = `${name} and ${known.by} have entry ${entry.index} of term ${entry.term}`;
        if (known.digest !== digest) violate("LOG-3", `${what} with different content`);
        if (
          previousTerm !== undefined &&
          known.previousTerm !== undefined &&
          previousTerm !== known.previousTerm
        ) {
          violate(
            "LOG-3",
            `${what} after entries of the terms ${previousTerm} and ${known.previousTerm}`,
          );
        }
      }
      previousTerm = entry.term;
      if (isConfChange && raft.role === "leader" && entry.term === raft.term)
        this.#addedConfChange(watched, entry.index);
    }
  }
}
