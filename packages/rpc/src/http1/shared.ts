/** The state that all HTTP/1.1 connections of a server share. */
import type { HttpContext } from "../http/context.ts";
import type { BufferPool } from "../http2/buffer-pool.ts";
import type { SharedBudget } from "../http2/byte-budget.ts";
import type { EngineCounters } from "../http2/shared.ts";
import { Http1Counters } from "./counters.ts";
import type { Http1Limits } from "./limits.ts";
import { KnownHeads } from "./response-head.ts";

export class Http1Shared {
  readonly limits: Http1Limits;
  readonly context: HttpContext;
  readonly counters = new Http1Counters();
  /** Counters of the budgets, which both HTTP versions share. */
  readonly budgetCounters: EngineCounters;
  /** Bytes of requests that are being received or processed, over all connections. */
  readonly held: SharedBudget;
  /** Bytes of responses that wait to be sent, over all connections. */
  readonly pending: SharedBudget;
  /** Bytes that open requests take by themselves, mostly their heads, over all connections. */
  readonly heads: SharedBudget;
  readonly buffers: BufferPool;
  readonly knownHeads: KnownHeads;

  constructor(
    limits: Http1Limits,
    context: HttpContext,
    { held, pending, heads, buffers, counters }: SharedWithHttp2,
  ) {
    this.limits = limits;
    this.context = context;
    this.held = held;
    this.pending = pending;
    this.heads = heads;
    this.buffers = buffers;
    this.budgetCounters = counters;
    this.knownHeads = new KnownHeads(context.date);
  }
}

/** What the connections of both HTTP versions share. */
export interface SharedWithHttp2 {
  readonly held: SharedBudget;
  readonly pending: SharedBudget;
  readonly heads: SharedBudget;
  readonly buffers: BufferPool;
  readonly counters: EngineCounters;
}
