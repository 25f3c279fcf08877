/** What all connections of a server share. */
import { ByteBudget } from "./byte-budget.ts";
import { EngineCounters } from "./counters.ts";
import type { Http2Limits } from "./limits.ts";

export class Http2Shared {
  readonly limits: Http2Limits;
  readonly counters = new EngineCounters();
  /** Bytes of requests that are being received or worked on, over all connections. */
  readonly held: ByteBudget;
  /** Bytes of answers that wait to be sent, over all connections. */
  readonly pending: ByteBudget;

  /**
   * @param maxHeldTotalBytes and maxPendingTotalBytes bound all connections together, as limits.maxHeldBytes and maxPendingBytes bound
   * each.
   */
  constructor(limits: Http2Limits, maxHeldTotalBytes: number, maxPendingTotalBytes: number) {
    this.limits = limits;
    this.held = new ByteBudget(maxHeldTotalBytes);
    this.pending = new ByteBudget(maxPendingTotalBytes);
  }
}
