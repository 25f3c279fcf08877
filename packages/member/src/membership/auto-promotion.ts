/**
 * A learner that promotes itself (--auto-promote): it repeats a request to the leader, which
 * makes it a voter once it has caught up. Beyond etcd, where an operator has to come back for
 * that.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { EtcdError, idToHex } from "@quorate/proto";

/** How often it sends the request. */
const ASK_EVERY_MS = 1000;

export interface AutoPromotionParts {
  readonly memberId: bigint;
  readonly clock: Clock;
  readonly logger: Logger;
  isLearner(): boolean;
  /**
   * Whether the member has published itself: one that has not is not started in the eyes of the
   * others.
   */
  isPublished(): boolean;
  promote(): Promise<void>;
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

  async #ask(): Promise<void> {
    const { isLearner, isPublished, logger, memberId, promote } = this.#parts;
    if (this.#isAsking || !isLearner() || !isPublished()) return;
    this.#isAsking = true;
    try {
      await promote();
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
