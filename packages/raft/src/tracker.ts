/**
 * A leader's record of its members: a Progress for each, and the majorities of them.
 *
 *     probe ------ acknowledged ----------------> replicate
 *       ^ one message a heartbeat interval           |  a stream, as far as the window goes
 *       |<------- rejected, or unreachable ----------+
 *       |
 *       +-- the log no longer reaches back --> snapshot
 *                                                  | reported, or acknowledged in the log
 *                                                  +--> probe, replicate
 *
 * In the states probe and snapshot, nothing else is in flight; in replicate, entries match+1 to
 * next-1 are, in the window of Inflights.
 */
import type { raftpb } from "@quorate/proto";
import { memberIds } from "./confchange.ts";
import type { ProgressState, ProgressStatus, RaftConfig } from "./interface.ts";
import { violated } from "./invariants.ts";

export type VoteResult = "won" | "lost" | "pending";

/**
 * The highest value that a majority has reached: of n values the (n/2+1)-th highest. Infinity for
 * no values, so that an empty half of a configuration restricts nothing. Sorts `values` in place by
 * insertion, the fastest way for so few.
 */
export function majorityValue(values: number[]): number {
  const n = values.length;
  if (n === 0) return Number.POSITIVE_INFINITY;
  for (let i = 1; i < n; i++) {
    const value = values[i];
    let j = i - 1;
    for (; j >= 0 && values[j] > value; j--) values[j + 1] = values[j];
    values[j + 1] = value;
  }
  return values[n - 1 - (n >> 1)];
}

/** The state of a vote by one majority. An empty one is won. */
export function majorityVote(
  voters: readonly bigint[],
  votes: ReadonlyMap<bigint, boolean>,
): VoteResult {
  const needed = (voters.length >> 1) + 1;
  let granted = 0;
  let missing = 0;
  for (const id of voters) {
    const vote = votes.get(id);
    if (vote === undefined) missing++;
    else if (vote) granted++;
  }
  if (voters.length === 0 || granted >= needed) return "won";
  return granted + missing >= needed ? "pending" : "lost";
}

/** Both majorities must be won; one that is lost decides. */
export function jointVote(
  incoming: readonly bigint[],
  outgoing: readonly bigint[],
  votes: ReadonlyMap<bigint, boolean>,
): VoteResult {
  const one = majorityVote(incoming, votes);
  const other = majorityVote(outgoing, votes);
  if (one === other) return one;
  return one === "lost" || other === "lost" ? "lost" : "pending";
}

/**
 * The window of messages in flight to one follower: a ring of (index of the last entry, bytes),
 * oldest first.
 */
export class Inflights {
  readonly maxMessages: number;
  readonly maxBytes: number;
  readonly #indexes: number[] = [];
  readonly #sizes: number[] = [];
  #start = 0;
  #count = 0;
  #bytes = 0;

  /**
   * Full at maxMessages messages, or once maxBytes bytes are reached: the message that reaches them
   * still fits.
   */
  constructor(maxMessages: number, maxBytes: number) {
    this.maxMessages = maxMessages;
    this.maxBytes = maxBytes;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get full(): boolean {
    return this.#count >= this.maxMessages || this.#bytes >= this.maxBytes;
  }

  /** Adds a message. @param index of its last entry, above that of the message before */
  add(index: number, bytes: number): void {
    if (this.#count >= this.maxMessages) violated("RAFT-13", `${this.#count} messages in flight`);
    const size = this.#indexes.length;
    if (this.#count > 0 && this.#indexes[(this.#start + this.#count - 1) % size] >= index) {
      violated(
        "RAFT-13",
        `index ${index} after ${this.#indexes[(this.#start + this.#count - 1) % size]}`,
      );
    }
    if (this.#count === size) this.#grow();
    const at = (this.#start + this.#count) % this.#indexes.length;
    this.#indexes[at] = index;
    this.#sizes[at] = bytes;
    this.#count++;
    this.#bytes += bytes;
  }

  /** Doubles the ring: most followers never need all of it. */
  #grow(): void {
    const ordered = this.#indexes.map((_, i) => (this.#start + i) % this.#indexes.length);
    const indexes = ordered.map((at) => this.#indexes[at]);
    const sizes = ordered.map((at) => this.#sizes[at]);
    const size = Math.min(Math.max(2 * indexes.length, 4), this.maxMessages);
    for (let i = 0; i < size; i++) {
      this.#indexes[i] = indexes[i] ?? 0;
      this.#sizes[i] = sizes[i] ?? 0;
    }
    this.#start = 0;
  }

  /** Forgets the messages whose last entry is not above index. */
  freeUpTo(index: number): void {
    while (this.#count > 0 && this.#indexes[this.#start] <= index) {
      this.#bytes -= this.#sizes[this.#start];
      this.#start = (this.#start + 1) % this.#indexes.length;
      this.#count--;
    }
  }

  /** Forgets all messages. */
  reset(): void {
    this.#start = 0;
    this.#count = 0;
    this.#bytes = 0;
  }
}

/** The bounds of what is in flight to one member. */
export type Window = Pick<RaftConfig, "maxInflightMessages" | "maxInflightBytes">;

/** One member as its leader knows it, and how the leader sends to it. */
export class Progress {
  readonly id: bigint;
  isLearner: boolean;
  match = 0;
  next: number;
  state: ProgressState = "probe";
  /** Index of the snapshot in flight; 0 outside of the state snapshot. */
  pendingSnapshot = 0;
  /** A message arrived from the member since the last check for a quorum. */
  recentActive = false;
  /**
   * The highest commit index sent to the member. Lowered when messages in flight are probably lost.
   */
  sentCommit = 0;
  /**
   * No more appends until a response: after a probe, or when the window is full. The response to a
   * heartbeat allows one more message.
   */
  flowPaused = false;
  /** An append is due even if it is empty. */
  appendDue = false;
  /** The latest read round that the member has confirmed. */
  ackedRound = 0;
  /**
   * The leader's tick at which it sent the latest heartbeat that the member responded to; -1 before
   * any.
   */
  ackedTick = -1;
  readonly inflights: Inflights;

  constructor(
    id: bigint,
    next: number,
    isLearner: boolean,
    { maxInflightMessages, maxInflightBytes }: Window,
  ) {
    this.id = id;
    this.next = next;
    this.isLearner = isLearner;
    this.inflights = new Inflights(maxInflightMessages, maxInflightBytes);
  }

  #enter(state: ProgressState): void {
    this.state = state;
    this.flowPaused = false;
    this.pendingSnapshot = 0;
    this.inflights.reset();
  }

  /** Starts probing after match, or after the pending snapshot if that was installed. */
  becomeProbe(): void {
    const after = Math.max(this.match, this.pendingSnapshot);
    this.#enter("probe");
    this.next = after + 1;
    this.sentCommit = Math.min(this.sentCommit, after);
  }

  becomeReplicate(): void {
    this.#enter("replicate");
    this.next = this.match + 1;
  }

  /** A snapshot of this index is being sent; nothing else is until its result is reported. */
  becomeSnapshot(index: number): void {
    this.#enter("snapshot");
    this.pendingSnapshot = index;
    this.next = index + 1;
    this.sentCommit = index;
  }

  get paused(): boolean {
    return this.state === "snapshot" || this.flowPaused;
  }

  /** Records an append of `count` entries from next. */
  sentEntries(count: number, bytes: number): void {
    if (this.state === "replicate") {
      if (count > 0) {
        this.next += count;
        this.inflights.add(this.next - 1, bytes);
      }
      // A message that fills the window, or is sent although it is full, is a probe: only one is in
      // flight.
      this.flowPaused = this.inflights.full;
    } else if (count > 0) {
      this.flowPaused = true;
    }
  }

  /** True if sending the commit index could raise the follower's, and it was not sent before. */
  canBumpCommit(commit: number): boolean {
    return commit > this.sentCommit && this.sentCommit < this.next - 1;
  }

  /**
   * An acknowledgement up to index; false if it is stale. @param lastIndex the end of the leader's
   * log
   */
  acknowledge(index: number, lastIndex: number): boolean {
    if (index <= this.match) return false;
    if (index > lastIndex) violated("RAFT-12", `match ${index}, last entry ${lastIndex}`);
    this.match = index;
    this.next = Math.max(this.next, index + 1);
    this.flowPaused = false;
    return true;
  }

  /**
   * A rejection of the append after `rejected`. @param meet the index at which the logs may match.
   * False if it is stale, because the state has changed since that append was sent.
   */
  reject(rejected: number, meet: number): boolean {
    if (this.state === "replicate") {
      if (rejected <= this.match) return false;
      this.next = this.match + 1;
    } else {
      if (rejected !== this.next - 1) return false;
      this.next = Math.max(Math.min(rejected, meet + 1), this.match + 1);
      this.flowPaused = false;
    }
    this.sentCommit = Math.min(this.sentCommit, this.next - 1);
    return true;
  }

  status(): ProgressStatus {
    return {
      id: this.id,
      match: this.match,
      next: this.next,
      state: this.state,
      recentActive: this.recentActive,
      isLearner: this.isLearner,
      paused: this.paused,
      inflightMessages: this.inflights.count,
      inflightBytes: this.inflights.bytes,
      pendingSnapshot: this.pendingSnapshot,
    };
  }
}

/** The members of the configuration, as a leader knows them. Made new for each term. */
export class Tracker {
  readonly #byId = new Map<bigint, Progress>();
  /** All members by id, and those of each half of the configuration, for the hot paths. */
  #all: Progress[] = [];
  #incoming: Progress[] = [];
  #outgoing: Progress[] = [];
  #conf: raftpb.ConfState;
  readonly #scratch: number[] = [];
  readonly #window: Window;

  /**
   * A new leader knows of no member, itself included, how far its log matches. @param next the
   * index to probe from
   */
  constructor(conf: raftpb.ConfState, next: number, window: Window) {
    this.#conf = conf;
    this.#window = window;
    this.#track(next, false);
  }

  /** Every member's progress, by id. */
  get all(): readonly Progress[] {
    return this.#all;
  }

  get(id: bigint): Progress | undefined {
    return this.#byId.get(id);
  }

  /**
   * Puts a configuration into effect. Members that stay keep their progress; new ones are probed
   * from the end of the log. They count as active, or the next quorum check could depose the leader
   * before they could respond.
   */
  configure(conf: raftpb.ConfState, lastIndex: number): void {
    this.#conf = conf;
    this.#track(Math.max(lastIndex, 1), true);
  }

  /** Forgets removed members and adds new ones. */
  #track(next: number, recentActive: boolean): void {
    const { voters, votersOutgoing, learners } = this.#conf;
    const ids = memberIds(this.#conf);
    const kept = new Set(ids);
    for (const id of [...this.#byId.keys()]) if (!kept.has(id)) this.#byId.delete(id);
    this.#all = ids.map((id) => {
      const isLearner = learners.includes(id);
      const progress = this.#byId.get(id) ?? this.#add(id, next, isLearner, recentActive);
      progress.isLearner = isLearner;
      return progress;
    });
    this.#incoming = this.#all.filter(({ id }) => voters.includes(id));
    this.#outgoing = this.#all.filter(({ id }) => votersOutgoing.includes(id));
  }

  #add(id: bigint, next: number, isLearner: boolean, recentActive: boolean): Progress {
    const progress = new Progress(id, next, isLearner, this.#window);
    progress.recentActive = recentActive;
    this.#byId.set(id, progress);
    return progress;
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
}
