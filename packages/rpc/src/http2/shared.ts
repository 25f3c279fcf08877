/** The state that all connections of a server share. */
import { BufferPool } from "./buffer-pool.ts";
import { SharedBudget } from "./byte-budget.ts";
import { EngineCounters } from "./counters.ts";
import type { Http2Limits } from "./limits.ts";

export class Http2Shared {
  readonly limits: Http2Limits;
  readonly counters = new EngineCounters();
  readonly buffers = new BufferPool();
  /** Bytes of requests that are being received or processed, over all connections. */
  readonly held: SharedBudget;
  /** Bytes of responses that wait to be sent, over all connections. */
  readonly pending: SharedBudget;
  /** Bytes that open streams take by themselves, mostly their headers, over all connections. */
  readonly heads: SharedBudget;

  /**
   * @param maxHeldTotalBytes and the others bound all connections together, as limits.maxHeldBytes,
   * maxPendingBytes and maxHeadBytes bound each one.
   */
  constructor(
    limits: Http2Limits,
    maxHeldTotalBytes: number,
    maxPendingTotalBytes: number,
    maxHeadTotalBytes: number,
  ) {
    this.limits = limits;
    this.held = new SharedBudget(maxHeldTotalBytes);
    this.pending = new SharedBudget(maxPendingTotalBytes);
    this.heads = new SharedBudget(maxHeadTotalBytes);
  }
}
