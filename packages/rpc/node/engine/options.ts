/** The engine's bounds, from what a server is told. */
import { DEFAULT_HTTP2_LIMITS, type Http2Limits } from "../../src/http2/limits.ts";
import { type ResolvedOptions, type RpcServerOptions, resolveOptions } from "../options.ts";

const MIB = 1024 * 1024;

/**
 * A stream costs memory, so no connection gets more of them, whatever --max-concurrent-streams
 * says.
 */
const MOST_STREAMS_PER_CONNECTION = 65_536;

/** Bounds over all connections of a server. */
export interface ServerLimits {
  /** Bytes of requests that are being received or worked on. */
  readonly maxHeldTotalBytes: number;
  /** Bytes that open streams take by themselves, their headers above all. */
  readonly maxHeadTotalBytes: number;
  /** Bytes of answers that wait for their clients' windows. */
  readonly maxPendingTotalBytes: number;
  /**
   * Bytes that wait for sockets, beyond which those that do not take theirs at once get no more and
   * are not read.
   */
  readonly maxUnsentTotalBytes: number;
  /** Time between two looks at all connections for timeouts. */
  readonly sweepPeriodMs: number;
}

export interface EngineServerOptions extends RpcServerOptions {
  /** What a connection, and what all of them may cost, where it should not be the default. */
  readonly limits?: Partial<Http2Limits & ServerLimits> | undefined;
}

export interface ResolvedEngineOptions {
  readonly server: ResolvedOptions;
  readonly http2: Http2Limits;
  readonly limits: ServerLimits;
}

/** Fills in the defaults; throws RangeError for a number that makes no sense. */
export function resolveEngineOptions(options: EngineServerOptions): ResolvedEngineOptions {
  const server = resolveOptions(options);
  const given = options.limits ?? {};
  const limits = {
    maxHeldTotalBytes: given.maxHeldTotalBytes ?? 512 * MIB,
    maxHeadTotalBytes: given.maxHeadTotalBytes ?? 512 * MIB,
    maxPendingTotalBytes: given.maxPendingTotalBytes ?? 1024 * MIB,
    maxUnsentTotalBytes: given.maxUnsentTotalBytes ?? 512 * MIB,
    sweepPeriodMs: given.sweepPeriodMs ?? 1000,
  };
  return {
    server,
    limits,
    http2: {
      ...DEFAULT_HTTP2_LIMITS,
      maxConcurrentStreams: Math.min(server.maxConcurrentStreams, MOST_STREAMS_PER_CONNECTION),
      streamWindowBytes: server.receiveWindowBytes,
      maxHeaderListBytes: server.maxHeaderListBytes,
      maxHeaderBlockBytes: server.maxHeaderListBytes,
      maxPendingBytes: server.maxConnectionMemoryMib * MIB,
      prefaceTimeoutMs: server.handshakeTimeoutMs,
      keepAliveMinTimeMs: server.grpcKeepAliveMinTimeMs,
      keepAliveIntervalMs: server.grpcKeepAliveIntervalMs,
      keepAliveTimeoutMs: server.grpcKeepAliveTimeoutMs,
      ...given,
    },
  };
}
