/** Connecting: options, credentials, links. */
import { setTimeout as sleep } from "node:timers/promises";
import { type ChannelOptions, credentials } from "@grpc/grpc-js";
import { Client, type Credentials } from "../src/client.ts";
import { parseEndpoint } from "../src/endpoint.ts";
import { Failover } from "../src/failover.ts";
import type { ClientTimer, Link } from "../src/link.ts";
import { GrpcLink } from "./grpc-link.ts";
import { TlsCredentials, tlsContext } from "./tls-credentials.ts";

/** TLS towards the cluster. All are PEM contents, not paths. */
export interface TlsOptions {
  /** The CA that the servers' certificates must come from; the system's CAs if absent. */
  readonly ca?: Uint8Array | string;
  /** The client's own certificate and key, where servers ask for one. */
  readonly cert?: Uint8Array | string;
  readonly key?: Uint8Array | string;
  /** The name that the servers' certificates must carry, in place of the host of each endpoint. */
  readonly serverName?: string;
  /** Accept any server certificate. For tests. */
  readonly insecureSkipVerify?: boolean;
  /**
   * Talk plainly to endpoints without a scheme, so that these options count for https:// and unixs:
   * alone.
   */
  readonly plainByDefault?: boolean;
}

export interface ClientOptions {
  /** "host:port" or URLs; at least one. Those without a scheme use TLS if `tls` is given. */
  readonly endpoints: readonly string[];
  readonly tls?: TlsOptions;
  /** A user, or a token, where the cluster has users. */
  readonly auth?: Credentials;
  /** How long a call may take with all its repetitions; 5000 unless told. */
  readonly timeoutMs?: number;
  /** How long connecting to one endpoint may take before the next is tried; 2000 unless told. */
  readonly dialTimeoutMs?: number;
  /**
   * Ping a silent connection so often; never unless told. The server disconnects whom it finds too
   * eager (5 s by default).
   */
  readonly keepaliveTimeMs?: number;
  /** How long a ping's answer may take; 6000 unless told. */
  readonly keepaliveTimeoutMs?: number;
  /** More calls than this at once are refused; 10000 unless told. */
  readonly maxPendingCalls?: number;
  /** Longer requests are not sent; no limit unless told, since the server has its own. */
  readonly maxRequestBytes?: number;
  /** Longer answers are refused; no limit unless told. */
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
 * A client of the cluster at `endpoints`. Connections are made when calls need them. Throws
 * RangeError for an endpoint that is none.
 */
export function connect(options: ClientOptions): Client {
  const { tls } = options;
  let context: ReturnType<typeof tlsContext> | undefined;
  const secureCredentials = (): TlsCredentials => {
    context ??= tlsContext({ ca: pem(tls?.ca), cert: pem(tls?.cert), key: pem(tls?.key) });
    return new TlsCredentials(context, tls ?? {});
  };
  const channelOptions: ChannelOptions = {
    // A member that was restarted should be found again within a blink, not after the second that
    // is the default.
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
