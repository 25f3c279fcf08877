/** What the gateway is made of: its parts, its limits and its counters. */
import type { Clock } from "@quorate/host";
import type { HttpRoute } from "@quorate/proto";
import type { DeadlineQueue } from "../deadlines.ts";
import type { RpcObserver, ServiceTable } from "../service.ts";
import type { BodyDecodings } from "./body.ts";
import type { CallSlots } from "./call-slots.ts";

/** Sizes are in bytes. */
export interface GatewayLimits {
  /** Longest request message in its encoded form. */
  readonly maxRequestBytes: number;
  /** Longest body of a unary request, and longest JSON value of a stream. */
  readonly maxBodyBytes: number;
  /** Longest response message in its encoded form. */
  readonly maxResponseBytes: number;
  /** Messages of one stream that may wait to be written as JSON before `send` returns false. */
  readonly sendBudgetBytes: number;
  /** Requests of clients that have gone and whose handlers still work. */
  readonly maxLingeringBytes: number;
  /** Calls at a time; more wait (etcd: --max-concurrent-streams on the gateway's connection). */
  readonly maxCalls: number;
}

/** Events that no RpcObserver sees. */
export interface GatewayCounters {
  /** Bodies that are not the JSON of their message. */
  malformed: number;
  /** Requests refused for their size. */
  tooLarge: number;
  /** Requests refused because bodies in memory use their budget. */
  heldBytesRefusals: number;
  /** Paths or methods that do not exist. */
  unrouted: number;
}

/** The parts that a gateway is made of. */
export interface GatewayDeps {
  readonly services: ServiceTable;
  readonly routes: readonly HttpRoute[];
  readonly clock: Clock;
  readonly observer: RpcObserver | undefined;
  readonly limits: GatewayLimits;
}

/** The state that all calls of a gateway share. */
export interface GatewayShared {
  readonly clock: Clock;
  readonly observer: RpcObserver | undefined;
  readonly limits: GatewayLimits;
  readonly deadlines: DeadlineQueue;
  readonly slots: CallSlots;
  readonly bodies: BodyDecodings;
  readonly counters: GatewayCounters;
  /** Bytes of requests whose clients have gone and whose handlers still work. */
  lingeringBytes: number;
}
