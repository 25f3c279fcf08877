/** The options of an RpcServer, with etcd's defaults where etcd has the option. */
import type { OpenDoor, TlsOptions, TlsSource } from "@quorate/host/node";

/** An address to listen on: a host and port (0 for a free one), or the path of a unix socket. */
export interface ListenAddress {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
  /** SO_REUSEPORT: other processes may listen on the same port. */
  readonly reusePort?: boolean | undefined;
  /** TLS with `RpcServerOptions.tls`; plain text otherwise. */
  readonly secure: boolean;
  /**
   * With `secure`: a connection that does not begin with a TLS handshake is served without TLS, and
   * has no identity.
   */
  readonly alsoPlain?: boolean | undefined;
  /** The requests served here, "all" by default. Others get the response for unknown paths. */
  readonly serves?: "all" | "grpc" | "http" | undefined;
  /**
   * Maximum number of open connections on this address; `RpcServerOptions.maxConnections` by
   * default.
   */
  readonly maxConnections?: number | undefined;
  /** The address, where it was opened before; the server closes it. */
  readonly door?: OpenDoor | undefined;
}

/** An address that a server listens on. */
export interface BoundAddress {
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly path: string | undefined;
  readonly secure: boolean;
}

export interface RpcServerOptions {
  readonly listen: readonly ListenAddress[];
  /**
   * Required if an address is secure. Options from a source may change while the server runs; new
   * connections use the new ones.
   */
  readonly tls?: TlsOptions | TlsSource | undefined;
  /**
   * Longest request message, compressed or not; 2 MiB (etcd's 1.5 MiB for a request, and 512 KiB of
   * gRPC overhead).
   */
  readonly maxRequestBytes?: number | undefined;
  /** Longest list of headers; 64 KiB. */
  readonly maxHeaderListBytes?: number | undefined;
  /** Streams that a client may have open on one connection; 65,536. */
  readonly maxConcurrentStreams?: number | undefined;
  /**
   * Connections on each address; 16,384. A quarter of them, at most 2,048, are for handshakes. When
   * all are taken, an idle one is closed for a client that has fewer; otherwise the new connection
   * is closed.
   */
  readonly maxConnections?: number | undefined;
  /**
   * Memory of one connection for received and sent frames, beyond which it gets no more streams;
   * 256 MiB, in whole MiB.
   */
  readonly maxConnectionMemoryMib?: number | undefined;
  /** Bytes of a stream that may wait to be sent before `send` returns false; 1 MiB. */
  readonly sendBudgetBytes?: number | undefined;
  /** Bytes that a client may send on one stream before the service consumes them; 1 MiB. */
  readonly receiveWindowBytes?: number | undefined;
  /**
   * A client that pings more often than this gets GOAWAY with ENHANCE_YOUR_CALM
   * (--grpc-keepalive-min-time); 5 s, 0 for never.
   */
  readonly grpcKeepAliveMinTimeMs?: number | undefined;
  /**
   * A client that was silent for this long is pinged (--grpc-keepalive-interval); 2 h, 0 for never.
   */
  readonly grpcKeepAliveIntervalMs?: number | undefined;
  /**
   * How long the acknowledgement of such a ping may take (--grpc-keepalive-timeout); 20 s, 0 for no
   * pings.
   */
  readonly grpcKeepAliveTimeoutMs?: number | undefined;
  /**
   * Maximum time of a TLS handshake, and then of the first headers, even if bytes keep arriving; 10
   * s each.
   */
  readonly handshakeTimeoutMs?: number | undefined;
  /**
   * How long a connection may be idle while three quarters of an address's connections are open; 60
   * s.
   */
  readonly idleUnderPressureMs?: number | undefined;
  /** How long an HTTP/1.1 connection may be idle between two requests; 5 min. */
  readonly httpIdleTimeoutMs?: number | undefined;
}

/** The options with their defaults filled in. */
export interface ResolvedOptions {
  readonly maxRequestBytes: number;
  readonly maxHeaderListBytes: number;
  readonly maxConcurrentStreams: number;
  readonly maxConnections: number;
  readonly maxConnectionMemoryMib: number;
  readonly sendBudgetBytes: number;
  readonly receiveWindowBytes: number;
  readonly grpcKeepAliveMinTimeMs: number;
  readonly grpcKeepAliveIntervalMs: number;
  readonly grpcKeepAliveTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly idleUnderPressureMs: number;
  readonly httpIdleTimeoutMs: number;
}

const KIB = 1024;
const MIB = 1024 * KIB;
/** Initial windows above this are not allowed in HTTP/2 (RFC 9113 section 6.5.2). */
const MAX_WINDOW_BYTES = 2 ** 31 - 1;

const MAX_INT32 = 2 ** 31 - 1;
const { MAX_SAFE_INTEGER } = Number;

/** Of each option the default, the least and the largest value. */
const RANGES: { readonly [name in keyof ResolvedOptions]: readonly [number, number, number] } = {
  maxRequestBytes: [2 * MIB, 1, MAX_INT32],
  maxHeaderListBytes: [64 * KIB, KIB, 16 * MIB],
  maxConcurrentStreams: [65_536, 1, 2 ** 32 - 1],
  maxConnections: [16_384, 1, MAX_SAFE_INTEGER],
  maxConnectionMemoryMib: [256, 1, 2 ** 20],
  sendBudgetBytes: [MIB, 1, MAX_INT32],
  receiveWindowBytes: [MIB, 65_535, MAX_WINDOW_BYTES],
  grpcKeepAliveMinTimeMs: [5000, 0, MAX_SAFE_INTEGER],
  grpcKeepAliveIntervalMs: [7_200_000, 0, MAX_SAFE_INTEGER],
  grpcKeepAliveTimeoutMs: [20_000, 0, MAX_SAFE_INTEGER],
  handshakeTimeoutMs: [10_000, 1, MAX_INT32],
  idleUnderPressureMs: [60_000, 1, MAX_INT32],
  httpIdleTimeoutMs: [300_000, 1, MAX_INT32],
};

/** Fills in the defaults; throws RangeError for a number out of range. */
export function resolveOptions(options: RpcServerOptions): ResolvedOptions {
  const names = Object.keys(RANGES) as (keyof ResolvedOptions)[];
  const resolved = names.map((name) => [name, resolve(name, options[name])]);
  return Object.fromEntries(resolved) as Record<keyof ResolvedOptions, number>;
}

function resolve(name: keyof ResolvedOptions, given: number | undefined): number {
  const [standard, least, most] = RANGES[name];
  const value = given ?? standard;
  if (!(value >= least && value <= most))
    throw new RangeError(`${name} must be from ${least} to ${most}, got ${value}`);
  return value;
}
