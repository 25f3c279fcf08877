/** The members of the configuration, a leader's progress for each, and the votes of an election. */
import type { raftpb } from "@quorate/proto";
import { isJoint, sortedIds } from "./confchange.ts";
import { Progress } from "./progress.ts";
import { jointVote, majorityValue, type VoteResult } from "./quorum.ts";

export class Tracker {
  #conf: raftpb.ConfState = {
    voters: [],
    learners: [],
    votersOutgoing: [],
    learnersNext: [],
    autoLeave: false,
  };
  readonly #byId = new Map<bigint, Progress>();
  /** All members by id, and those of each half of the configuration, for the hot paths. */
  #all: Progress[] = [];
  #incoming: Progress[] = [];
  #outgoing: Progress[] = [];
  readonly #votes = new Map<bigint, boolean>();
  readonly #scratch: number[] = [];
  readonly #maxInflightMessages: number;
  readonly #maxInflightBytes: number;

  /** @param maxInflightMessages and maxInflightBytes: the window to each member */
  constructor(maxInflightMessages: number, maxInflightBytes: number) {
    this.#maxInflightMessages = maxInflightMessages;
    this.#maxInflightBytes = maxInflightBytes;
  }

  /** The current configuration, lists in ascending order. Must not be changed. */
  get conf(): raftpb.ConfState {
    return this.#conf;
  }

  /** Every member's progress, by id. */
  get all(): readonly Progress[] {
    return this.#all;
  }

  get(id: bigint): Progress | undefined {
    return this.#byId.get(id);
  }

  /** True if id votes in either half of the configuration. */
  isVoter(id: bigint): boolean {
    return this.#conf.voters.includes(id) || this.#conf.votersOutgoing.includes(id);
  }

  /** Ids that vote in either half, ascending. */
  voterIds(): readonly bigint[] {
    return isJoint(this.#conf)
      ? sortedIds([...this.#conf.voters, ...this.#conf.votersOutgoing])
      : this.#conf.voters;
  }

  /**
   * Puts a configuration into effect. Members that stay keep their progress; new ones are probed
   * from the end of the log.
   */
  configure(conf: raftpb.ConfState, lastIndex: number): void {
    this.#conf = conf;
    const ids = sortedIds([...conf.voters, ...conf.votersOutgoing, ...conf.learners]);
    const kept = new Set(ids);
    for (const id of [...this.#byId.keys()]) if (!kept.has(id)) this.#byId.delete(id);
    for (const id of ids) {
      const isLearner = conf.learners.includes(id);
      const known = this.#byId.get(id);
      if (known !== undefined) {
        known.isLearner = isLearner;
        continue;
      }
      const added = new Progress(
        id,
        Math.max(lastIndex, 1),
        isLearner,
        this.#maxInflightMessages,
        this.#maxInflightBytes,
      );
      // A new member counts as active, or the next quorum check could depose the leader before the
      // member could respond.
      added.recentActive = true;
      this.#byId.set(id, added);
    }
    this.#all = ids.map((id) => this.#byId.get(id)!);
    this.#incoming = conf.voters.map((id) => this.#byId.get(id)!);
    this.#outgoing = conf.votersOutgoing.map((id) => this.#byId.get(id)!);
  }

  /** Resets all progress. @param next the index to probe from */
  resetProgress(next: number): void {
    for (const progress of this.#all) progress.reset(next);
  }

  #quorumOf(field: "match" | "ackedRound" | "ackedTick"): number {
    return Math.min(
      this.#majorityOf(this.#incoming, field),
      this.#majorityOf(this.#outgoing, field),
    );
  }

  #majorityOf(members: readonly Progress[], field: "match" | "ackedRound" | "ackedTick"): number {
    const values = this.#scratch;
    values.length = members.length;
    for (let i = 0; i < members.length; i++) values[i] = members[i][field];
    return majorityValue(values);
  }

  /** The highest index that a quorum has on disk. */
  quorumMatch(): number {
    return this.#quorumOf("match");
  }

  /** The latest read round that a quorum has confirmed. */
  quorumRound(): number {
    return this.#quorumOf("ackedRound");
  }

  /** The latest tick such that a quorum has responded to heartbeats sent at it or later. */
  quorumTick(): number {
    return this.#quorumOf("ackedTick");
  }

  /** True if a quorum was active since the last call; then resets the marks of all but self. */
  takeQuorumActive(self: bigint): boolean {
    const active = new Map<bigint, boolean>();
    for (const progress of this.#all) {
      active.set(progress.id, progress.id === self || progress.recentActive);
      progress.recentActive = progress.id === self;
    }
    return jointVote(this.#conf.voters, this.#conf.votersOutgoing, active) === "won";
  }

  resetVotes(): void {
    this.#votes.clear();
  }

  /** Records a vote; the first of each voter counts. */
  recordVote(id: bigint, granted: boolean): void {
    if (!this.#votes.has(id)) this.#votes.set(id, granted);
  }

  voteResult(): VoteResult {
    return jointVote(this.#conf.voters, this.#conf.votersOutgoing, this.#votes);
  }
}
