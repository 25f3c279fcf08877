/**
 * Handing leadership over: when an operator names the successor, and when a member that leads ends.
 */
import { type Clock, type Logger, sleep } from "@quorate/host";
import { errorOf, idToHex } from "@quorate/proto";
import type { Raft, Status, TransferResult } from "@quorate/raft";
import type { LeaderView } from "../loop/leader-view.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { LoopTurns } from "../loop/turns.ts";
import type { StoreRef } from "../reads/store-ref.ts";

/** How often the member looks whether another one leads. */
const LOOK_MS = 10;
/**
 * For this share of an election timeout the leader waits for a member that can take over: two
 * heartbeats, where there are ten in one.
 */
const HEARD_SHARE = 0.25;
/**
 * etcd's text; it reaches clients with status UNKNOWN, because etcd's table of statuses lacks it.
 */
const TRANSFER_TIMEOUT = "etcdserver: request timed out, leader transfer took too long";

export interface LeadershipParts {
  readonly memberId: bigint;
  readonly electionTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly store: StoreRef;
  readonly leader: LeaderView;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
}

export class Leadership {
  readonly #parts: LeadershipParts;

  constructor(parts: LeadershipParts) {
    this.#parts = parts;
  }

  /** What Raft knows now; of the others, where this member leads. */
  status(): Status {
    return this.#parts.raft.status();
  }

  /**
   * Hands leadership to a voter (etcd: EtcdServer.MoveLeader). Rejects with EtcdError, or Error
   * when it did not work within its time.
   */
  async move(to: bigint): Promise<void> {
    const { clock, leader, memberId, store, logger } = this.#parts;
    if (!leader.isLeader) throw errorOf("NotLeader");
    const successor = store.current.membership.member(to);
    if (successor === undefined || successor.isLearner) throw errorOf("BadLeaderTransferee");
    const startMs = clock.monotonicMs();
    await this.#handTo(to);
    if (leader.leader !== to) throw new Error(TRANSFER_TIMEOUT);
    logger.info("leadership transfer finished", {
      "local-member-id": idToHex(memberId),
      "old-leader-member-id": idToHex(memberId),
      "new-leader-member-id": idToHex(to),
      took: `${Math.round(clock.monotonicMs() - startMs)}ms`,
    });
  }

  /**
   * Hands leadership to the voter that is most up to date, if this member leads; resolves when
   * another leads or the time is up.
   */
  async handOver(): Promise<void> {
    const { clock, electionTimeoutMs, lifetime, leader, memberId, raft } = this.#parts;
    const deadlineMs = clock.monotonicMs() + HEARD_SHARE * electionTimeoutMs;
    while (leader.isLeader && !lifetime.hasEnded) {
      const others = raft
        .status()
        .progress.filter((peer) => peer.id !== memberId && !peer.isLearner);
      const [successor] = others
        .filter((peer) => peer.recentActive)
        .sort((a, b) => b.match - a.match);
      if (successor !== undefined) {
        await this.#handTo(successor.id);
        return;
      }
      // Once an election timeout Raft forgets which members responded; the next heartbeats bring it
      // back.
      if (others.length === 0 || clock.monotonicMs() >= deadlineMs) return;
      await sleep(clock, LOOK_MS);
    }
  }

  /**
   * If `id` leads, makes another voter lead, without an election's wait; resolves when that is so,
   * or the time is up.
   */
  async depose(id: bigint): Promise<void> {
    const { leader, memberId, store } = this.#parts;
    if (leader.leader !== id) return;
    if (id === memberId) {
      await this.handOver();
      return;
    }
    // A member that the leader does not transfer to requests it.
    if (
      store.current.membership.member(memberId)?.isLearner !== false ||
      this.#transfer(memberId) !== "accepted"
    )
      return;
    await this.#untilNotLedBy(id);
  }

  /**
   * Resolves when this member does not lead any more and knows the leader, or when Raft's time for
   * it, an election timeout, is up.
   */
  async #handTo(to: bigint): Promise<void> {
    const { logger, memberId } = this.#parts;
    if (to === memberId) return;
    logger.info("leadership transfer starting", {
      "local-member-id": idToHex(memberId),
      "current-leader-member-id": idToHex(memberId),
      "transferee-member-id": idToHex(to),
    });
    this.#transfer(to);
    await this.#untilNotLedBy(memberId);
  }

  #transfer(to: bigint): TransferResult {
    const result = this.#parts.raft.transferLeadership(to);
    this.#parts.turns.wake();
    return result;
  }

  async #untilNotLedBy(id: bigint): Promise<void> {
    const { clock, electionTimeoutMs, lifetime, leader } = this.#parts;
    const deadlineMs = clock.monotonicMs() + electionTimeoutMs;
    const isOver = () => leader.leader !== id && leader.leader !== 0n;
    while (!isOver() && !lifetime.hasEnded && clock.monotonicMs() < deadlineMs) {
      await sleep(clock, LOOK_MS);
    }
  }
}
