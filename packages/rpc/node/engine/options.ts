/** The engine's limits, from the server's options. */
import { FIXED_HTTP1_LIMITS, type Http1Limits } from "../../src/http1/limits.ts";
import { DEFAULT_HTTP2_LIMITS, type Http2Limits } from "../../src/http2/limits.ts";
import { type ResolvedOptions, type RpcServerOptions, resolveOptions } from "../options.ts";

const MIB = 1024 * 1024;

/** The most streams of a connection, whatever --max-concurrent-streams is: each costs memory. */
const MOST_STREAMS_PER_CONNECTION = 65_536;

/** Bounds over all connections of a server. */
export interface ServerLimits {
  /** Bytes of requests that are being received or processed. */
  readonly maxHeldTotalBytes: number;
  /** Bytes that open streams take by themselves, mostly their headers. */
  readonly maxHeadTotalBytes: number;
  /** Bytes of responses that wait for their clients' windows. */
  readonly maxPendingTotalBytes: number;
  /**
   * Bytes that wait for sockets. Above it, sockets with unsent bytes get no more and are not read.
   */
  readonly maxUnsentTotalBytes: number;
  /** Time between two sweeps over all connections for timeouts. */
  readonly sweepPeriodMs: number;
}

export interface EngineServerOptions extends RpcServerOptions {
  /** Limits of each connection and of all of them that differ from the defaults. */
  readonly limits?: Partial<Http1Limits & Http2Limits & ServerLimits> | undefined;
}

export interface ResolvedEngineOptions {
  readonly server: ResolvedOptions;
  readonly http1: Http1Limits;
  readonly http2: Http2Limits;
  readonly limits: ServerLimits;
}

/** Fills in the defaults; throws RangeError for a number out of range. */
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
  const http2: Http2Limits = {
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
  };
  const { maxHeldBytes, maxHeadBytes, maxPendingBytes } = http2;
  const { outputTargetBytes, sendStallTimeoutMs } = http2;
  const http1: Http1Limits = {
    ...FIXED_HTTP1_LIMITS,
    maxHeldBytes,
    maxHeadBytes,
    maxPendingBytes,
    outputTargetBytes,
    sendStallTimeoutMs,
    maxHeaderListBytes: server.maxHeaderListBytes,
    headTimeoutMs: server.handshakeTimeoutMs,
    idleTimeoutMs: server.httpIdleTimeoutMs,
    ...given,
  };
  return { server, limits, http1, http2 };
}
