/** The state that all HTTP/1.1 connections of a server share. */
import type { HttpContext } from "../http/fields.ts";
import type { SharedBudget } from "../http2/byte-budget.ts";
import type { BufferPool } from "../http2/output.ts";
import type { EngineCounters } from "../http2/shared.ts";
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

/** The HTTP/1.1 engine's counters since its start: one object for all connections of a server. */
export class Http1Counters {
  /** HTTP/1 connections since the start, and those that are open. */
  connections = 0;
  openConnections = 0;
  /** Requests whose head was complete, and those that are being served. */
  requests = 0;
  openRequests = 0;
  /** Connections that were taken over by another protocol (WebSocket). */
  upgrades = 0;
  /** Requests that broke a rule of HTTP/1.1, which ended their connections. */
  malformedRequests = 0;
  /** Requests refused because their headers, or the trailers of a body, were too long. */
  headersTooLarge = 0;
  /** Requests that were not complete in time. */
  requestTimeouts = 0;
}
