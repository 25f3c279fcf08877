/** connect(): makes a client from options, with one link per endpoint. */
import { setTimeout as sleep } from "node:timers/promises";
import { type ChannelOptions, credentials } from "@grpc/grpc-js";
import { Client, type Credentials } from "../src/client.ts";
import { parseEndpoint } from "../src/endpoint.ts";
import { Failover } from "../src/failover.ts";
import type { ClientTimer, Link } from "../src/link.ts";
import { GrpcLink } from "./grpc-link.ts";
import { TlsCredentials, tlsContext } from "./tls-credentials.ts";

/** TLS options. Certificates and keys are PEM contents, not paths. */
export interface TlsOptions {
  /** CA certificates that verify the servers; the system's if absent. */
  readonly ca?: Uint8Array | string;
  /** The client's own certificate and key, for servers that require one. */
  readonly cert?: Uint8Array | string;
  readonly key?: Uint8Array | string;
  /** The name that the servers' certificates must contain, instead of each endpoint's host. */
  readonly serverName?: string;
  /** Accept any server certificate. For tests. */
  readonly insecureSkipVerify?: boolean;
  /**
   * Connect without TLS to endpoints without a scheme; TLS applies to https:// and unixs: only.
   */
  readonly plainByDefault?: boolean;
}

export interface ClientOptions {
  /** "host:port" or URLs; at least one. Those without a scheme use TLS if `tls` is given. */
  readonly endpoints: readonly string[];
  readonly tls?: TlsOptions;
  /** A user, or a token, where the cluster has users. */
  readonly auth?: Credentials;
  /** Timeout of a call with all its retries; default 5000. */
  readonly timeoutMs?: number;
  /** Timeout of connecting to one endpoint, before the next is tried; default 2000. */
  readonly dialTimeoutMs?: number;
  /**
   * Interval between pings on a silent connection; absent for none. The server closes connections
   * that ping more often than its minimum (5 s by default).
   */
  readonly keepaliveTimeMs?: number;
  /** How long a ping may stay unanswered; default 6000. */
  readonly keepaliveTimeoutMs?: number;
  /** Concurrent calls beyond this are refused; default 10000. */
  readonly maxPendingCalls?: number;
  /** Longer requests are refused; default no limit, since the server has its own. */
  readonly maxRequestBytes?: number;
  /** Longer responses are refused; default no limit. */
  readonly maxResponseBytes?: number;
}

const clock = { nowMs: () => performance.now(), sleep: (delayMs: number) => sleep(delayMs) };

const timer: ClientTimer = {
  after(delayMs, task) {
    const handle = setTimeout(task, delayMs);
    return () => clearTimeout(handle);
  },
};

function pem(content: Uint8Array | string | undefined): Buffer | string | undefined {
  return content === undefined || typeof content === "string" ? content : Buffer.from(content);
}

/**
 * Makes a client of the cluster at `endpoints`. Connections open with the first call that needs
 * them. Throws RangeError for a malformed endpoint.
 */
export function connect(options: ClientOptions): Client {
  const { tls } = options;
  let context: ReturnType<typeof tlsContext> | undefined;
  const secureCredentials = (): TlsCredentials => {
    context ??= tlsContext({ ca: pem(tls?.ca), cert: pem(tls?.cert), key: pem(tls?.key) });
    return new TlsCredentials(context, tls ?? {});
  };
  const channelOptions: ChannelOptions = {
    // The default of one second would delay calls to a member that has just restarted.
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 3000,
    "grpc.max_receive_message_length": options.maxResponseBytes ?? -1,
    "grpc.max_send_message_length": options.maxRequestBytes ?? -1,
    ...(options.keepaliveTimeMs === undefined
      ? {}
      : {
          "grpc.keepalive_time_ms": options.keepaliveTimeMs,
          "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs ?? 6000,
        }),
  };
  const openLink = (text: string): Link => {
    const endpoint = parseEndpoint(text, tls !== undefined && tls.plainByDefault !== true);
    return new GrpcLink(
      endpoint,
      endpoint.secure ? secureCredentials() : credentials.createInsecure(),
      channelOptions,
    );
  };
  const links = options.endpoints.map(openLink);
  const limits = {
    timeoutMs: options.timeoutMs ?? 5000,
    dialTimeoutMs: options.dialTimeoutMs ?? 2000,
    maxPendingCalls: options.maxPendingCalls ?? 10_000,
  };
  const failover = new Failover(links, limits, clock, Math.floor(Math.random() * links.length));
  return new Client(failover, openLink, options.auth, timer);
}
