/**
 * A learner that promotes itself (--auto-promote): it repeats a request to the leader, which
 * makes it a voter once it has caught up. Beyond etcd, where an operator has to come back for
 * that.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { EtcdError, idToHex } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { StoreRef } from "../reads/store-ref.ts";
import type { Reconfiguration } from "./reconfiguration.ts";

/** How often it sends the request. */
const ASK_EVERY_MS = 1000;

export interface AutoPromotionParts {
  readonly memberId: bigint;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly raft: Raft;
  readonly store: StoreRef;
  readonly reconfiguration: Reconfiguration;
}

export class AutoPromotion {
  readonly #parts: AutoPromotionParts;
  #timer: Timer | undefined;
  #isAsking = false;
  #loggedReason = "";

  constructor(parts: AutoPromotionParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = this.#parts.clock.every(ASK_EVERY_MS, () => void this.#ask());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** A member that has not published itself is not started in the eyes of the others. */
  get #isPublished(): boolean {
    const { store, memberId } = this.#parts;
    return (store.current.membership.member(memberId)?.name ?? "") !== "";
  }

  async #ask(): Promise<void> {
    const { raft, logger, memberId, reconfiguration } = this.#parts;
    const isLearner = raft.confState.learners.includes(memberId);
    if (this.#isAsking || !isLearner || !this.#isPublished) return;
    this.#isAsking = true;
    try {
      await reconfiguration.promote(memberId);
      logger.info("the learner has caught up and is a voter now", {
        "local-member-id": idToHex(memberId),
      });
      this.#loggedReason = "";
    } catch (error) {
      // Each reason once: the request repeats.
      const { message } = error as Error;
      const isUsual = error instanceof EtcdError && error.code === "MemberLearnerNotReady";
      if (!isUsual && message !== this.#loggedReason)
        logger.warn("the learner was not promoted yet", { error: message });
      this.#loggedReason = message;
    } finally {
      this.#isAsking = false;
    }
  }
}
