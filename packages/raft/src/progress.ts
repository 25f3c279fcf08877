/**
 * A leader's record of one member, and how it sends to it.
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
 * next-1 are.
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
    maxInflightMessages: number,
    maxInflightBytes: number,
  ) {
    this.id = id;
    this.next = next;
    this.isLearner = isLearner;
    this.inflights = new Inflights(maxInflightMessages, maxInflightBytes);
  }

  /** Resets to the start of a term: only the index to probe is known. */
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
