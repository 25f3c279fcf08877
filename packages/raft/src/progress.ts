/**
 * What a leader knows of one member, and how it sends to it.
 *
 *     probe ------ acknowledged ----------------> replicate
 *       ^ one message a heartbeat interval           |  a stream, as far as the window goes
 *       |<------- rejected, or unreachable ----------+
 *       |
 *       +-- the log no longer reaches back --> snapshot
 *                                                  | reported, or acknowledged in the log
 *                                                  +--> probe, replicate
 *
 * In probe and in snapshot nothing is known to be on its way beyond what the state says; in
 * replicate, entries match+1 to next-1 are.
 */
import { Inflights } from "./inflights.ts";
import { violated } from "./invariants.ts";
import type { ProgressState, ProgressStatus } from "./status.ts";

export class Progress {
  readonly id: bigint;
  isLearner: boolean;
  match = 0;
  next: number;
  state: ProgressState = "probe";
  /** Index of the snapshot on its way; 0 outside of the snapshot state. */
  pendingSnapshot = 0;
  /** Heard of since the last check for a quorum. */
  recentActive = false;
  /** The highest commit index on its way there. Falls back when what was sent is likely lost. */
  sentCommit = 0;
  /**
   * No more appends until an answer: after a probe, or when the window is full. A heartbeat's
   * answer lifts it for one message.
   */
  flowPaused = false;
  /** An append is due even if it is empty. */
  appendDue = false;
  /** The latest read round it has confirmed. */
  ackedRound = 0;
  /** The leader's tick at which the latest heartbeat it has answered was sent; -1 before any. */
  ackedTick = -1;
  readonly inflights: Inflights;

  constructor(
    id: bigint,
    next: number,
    isLearner: boolean,
    maxInflightMessages: number,
    maxInflightBytes: number,
  ) {
    this.id = id;
    this.next = next;
    this.isLearner = isLearner;
    this.inflights = new Inflights(maxInflightMessages, maxInflightBytes);
  }

  /** Back to the start of a term: nothing known but where to probe. */
  reset(next: number): void {
    this.match = 0;
    this.next = next;
    this.#enter("probe");
    this.recentActive = false;
    this.sentCommit = 0;
    this.appendDue = false;
    this.ackedRound = 0;
    this.ackedTick = -1;
  }

  #enter(state: ProgressState): void {
    this.state = state;
    this.flowPaused = false;
    this.pendingSnapshot = 0;
    this.inflights.reset();
  }

  /** Starts probing after match, or after the pending snapshot, which has then been sent whole. */
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

  /** A snapshot of this index goes out; nothing else does until it is answered for. */
  becomeSnapshot(index: number): void {
    this.#enter("snapshot");
    this.pendingSnapshot = index;
    this.next = index + 1;
    this.sentCommit = index;
  }

  get paused(): boolean {
    return this.state === "snapshot" || this.flowPaused;
  }

  /** Notes an append of `count` entries from next. */
  sentEntries(count: number, bytes: number): void {
    if (this.state === "replicate") {
      if (count > 0) {
        this.next += count;
        this.inflights.add(this.next - 1, bytes);
      }
      // A message that fills the window, or goes out although it is full, is a probe: one at a
      // time.
      this.flowPaused = this.inflights.full;
    } else if (count > 0) {
      this.flowPaused = true;
    }
  }

  /** True if telling commit now could move the follower's commit index, and was not told before. */
  canBumpCommit(commit: number): boolean {
    return commit > this.sentCommit && this.sentCommit < this.next - 1;
  }

  /**
   * An acknowledgement up to index; false if that is old news. lastIndex is the end of the leader's
   * log.
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
   * A rejection of the append after `rejected`, with the place where the logs may meet. False if it
   * is stale: it is then about a message that a later one has overtaken.
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
