/** The state that all connections of a server share. */

import { SharedBudget } from "./byte-budget.ts";
import type { Http2Limits } from "./limits.ts";
import { BufferPool } from "./output.ts";

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

/**
 * The engine's counters since its start: plain numbers for metrics. One object for all connections
 * of a server.
 */
export class EngineCounters {
  /** HTTP/2 connections since the start, and those that are open. */
  connections = 0;
  openConnections = 0;
  /** Requests that got a stream, and streams that are open. */
  streams = 0;
  openStreams = 0;
  /** Streams that the client reset before their response was complete. */
  resetsReceived = 0;
  /** Streams refused because the connection reached its maximum of streams. */
  refusedStreams = 0;
  /** Frames that broke a rule of HTTP/2, on a stream or for the whole connection. */
  streamErrors = 0;
  connectionErrors = 0;
  /** Header blocks that could not be decoded. */
  compressionErrors = 0;
  /** Connections ended because of too many resets, or too many frames that move nothing. */
  resetFloods = 0;
  frameFloods = 0;
  /** Connections ended because a header block had too many bytes or frames. */
  headerBlockFloods = 0;
  /** Requests refused because their headers were too long. */
  headerListsTooLarge = 0;
  /**
   * Requests refused because received requests hold too much memory, on their connection or in
   * total.
   */
  heldBytesRefusals = 0;
  /**
   * Requests refused because open streams and their headers hold too much memory, on their
   * connection or in total.
   */
  headBytesRefusals = 0;
  /**
   * Streams cut off because unsent responses hold too much memory, on their connection or in total.
   */
  pendingBytesRefusals = 0;
  /** Connections ended because they held the most while the total was over its bound. */
  largestHolderCuts = 0;
  /** Connections ended because another client needed a slot. */
  shedConnections = 0;
  /** Connections ended because the client did not read finished responses for too long. */
  sendStalls = 0;
  /** Connections ended because the preface, a frame or a header block was not complete in time. */
  prefaceTimeouts = 0;
  frameTimeouts = 0;
  /** Connections ended because the client pinged too often, or did not acknowledge a ping. */
  pingFloods = 0;
  keepAliveTimeouts = 0;
}
