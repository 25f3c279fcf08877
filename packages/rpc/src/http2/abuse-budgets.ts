/**
 * Budgets for what costs a client less than it costs the server: frames that move nothing (empty
 * DATA, SETTINGS, PING, PRIORITY and so on; CVE-2019-9512, -9515 and -9518) and streams that end in
 * a reset (CVE-2023-44487). Each is a token bucket. Work that gets done refills them, so a client
 * that receives responses does not run out.
 */
import type { Http2Limits } from "./limits.ts";
import { TokenBucket } from "./token-bucket.ts";

/** Idle frames that one frame with content makes good. */
const REFILL_PER_PROGRESS = 2;

export class AbuseBudgets {
  readonly #idleFrames: TokenBucket;
  readonly #resets: TokenBucket;

  constructor(limits: Http2Limits, nowMs: number) {
    const { maxIdleFramesBurst, maxIdleFramesPerSecond, maxResetsBurst, maxResetsPerSecond } =
      limits;
    this.#idleFrames = new TokenBucket(maxIdleFramesBurst, maxIdleFramesPerSecond, nowMs);
    this.#resets = new TokenBucket(maxResetsBurst, maxResetsPerSecond, nowMs);
  }

  /** Charges `count` idle frames; false when the budget is used up. */
  chargeIdle(count: number, nowMs: number): boolean {
    return this.#idleFrames.take(count, nowMs);
  }

  /** Charges a reset stream; false when the budget is used up. */
  chargeReset(nowMs: number): boolean {
    return this.#resets.take(1, nowMs);
  }

  /** A frame with content was sent. */
  progressed(): void {
    this.#idleFrames.give(REFILL_PER_PROGRESS);
  }

  /** A response was sent to its end. */
  responded(): void {
    this.#resets.give(1);
  }
}
