/** The state and limits that all calls of a server share. */
import type { Clock, Logger } from "@quorate/host";
import type { DeadlineQueue } from "../deadlines.ts";
import type { HttpContext } from "../http/fields.ts";
import type { RpcObserver, ServiceTable } from "../service.ts";
import type { Compressor, Inflater } from "./compression.ts";

export interface GrpcLimits {
  /** Longest request message, compressed or not. */
  readonly maxRequestBytes: number;
  /** Longest response message, uncompressed. */
  readonly maxResponseBytes: number;
  /** Bytes of a stream that may wait to be sent before `send` returns false. */
  readonly sendBudgetBytes: number;
}

export interface GrpcShared {
  readonly limits: GrpcLimits;
  readonly services: ServiceTable;
  readonly http: HttpContext;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly deadlines: DeadlineQueue;
  readonly compressor: Compressor;
  readonly inflater: Inflater;
  readonly observer: RpcObserver | undefined;
}
