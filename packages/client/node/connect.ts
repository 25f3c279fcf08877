/** connect(): makes a client from options, with one link per endpoint. */
import { isIP } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConnectionOptions, SecureContext } from "node:tls";
import {
  BOUND,
  BYTES,
  checkOptions,
  FLAG,
  OBJECT,
  type Shape,
  TEXT,
  TEXTS,
  tlsContext,
} from "@quorate/host";
import { splitAddress } from "@quorate/rpc/client";
import { Client, type Credentials, type OpenLink } from "../src/client.ts";
import { type Endpoint, parseEndpoint } from "../src/endpoint.ts";
import { Failover } from "../src/failover.ts";
import type { ClientClock, ClientTimer, Link } from "../src/link.ts";
import { EngineLink } from "./engine-link.ts";
import { timerMs } from "./link-clock.ts";
import { tracer } from "./tracing.ts";

/** TLS options. Certificates and keys are PEM contents, not paths. */
export interface TlsOptions {
  /** CA certificates that verify the servers; the system's if absent. */
  readonly ca?: Uint8Array | string | undefined;
  /** The client's own certificate and key, for servers that require one. */
  readonly cert?: Uint8Array | string | undefined;
  readonly key?: Uint8Array | string | undefined;
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
  readonly tls?: TlsOptions | undefined;
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

const CLIENT_SHAPE: Shape<ClientOptions> = {
  endpoints: TEXTS,
  tls: OBJECT,
  auth: OBJECT,
  timeoutMs: BOUND,
  dialTimeoutMs: BOUND,
  keepaliveTimeMs: BOUND,
  keepaliveTimeoutMs: BOUND,
  maxPendingCalls: BOUND,
  maxRequestBytes: BOUND,
  maxResponseBytes: BOUND,
};

const TLS_SHAPE: Shape<TlsOptions> = {
  ca: BYTES,
  cert: BYTES,
  key: BYTES,
  serverName: TEXT,
  insecureSkipVerify: FLAG,
  plainByDefault: FLAG,
};

const AUTH_SHAPE = { name: TEXT, password: TEXT, token: TEXT };

const DEFAULT_DIAL_TIMEOUT_MS = 2000;

const clock = {
  nowMs: () => performance.now(),
  sleep: (delayMs: number, signal?: AbortSignal) =>
    sleep(timerMs(delayMs), undefined, signal === undefined ? {} : { signal }).catch(() => {}),
};

const timer: ClientTimer = {
  after(delayMs, task) {
    const handle = setTimeout(task, timerMs(delayMs));
    return () => clearTimeout(handle);
  },
};

function pem(content: Uint8Array | string | undefined): Buffer | string | undefined {
  return content === undefined || typeof content === "string" ? content : Buffer.from(content);
}

function contextOf({ ca, cert, key }: TlsOptions): SecureContext {
  // Loaded here: TLS takes a fifth of the time of a short program, with or without a use.
  const { createSecureContext } = process.getBuiltinModule("node:tls");
  return createSecureContext(tlsContext({ trusted: pem(ca), cert: pem(cert), key: pem(key) }));
}

/** Options of a handshake. SNI has host names only: TLS allows no addresses there. */
function tlsOptions(
  { address }: Endpoint,
  secureContext: SecureContext,
  { serverName, insecureSkipVerify }: TlsOptions,
): ConnectionOptions {
  const host =
    serverName ?? (address.startsWith("unix:") ? "localhost" : splitAddress(address).host);
  return {
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    secureContext,
    rejectUnauthorized: insecureSkipVerify !== true,
    ALPNProtocols: ["h2"],
  };
}

/**
 * Makes a client of the cluster at `endpoints`. Connections open with the first call that needs
 * them. Throws TypeError for a wrong option, and RangeError for a malformed endpoint.
 */
export function connect(options: ClientOptions): Client {
  checkOptions("connect", options, CLIENT_SHAPE);
  const { tls } = options;
  if (tls !== undefined) checkOptions("connect: tls", tls, TLS_SHAPE);
  if (options.auth !== undefined)
    checkOptions<Record<string, unknown>>("connect: auth", { ...options.auth }, AUTH_SHAPE);
  let context: SecureContext | undefined;
  const openLink = (text: string): Link => {
    const endpoint = parseEndpoint(text, tls !== undefined && tls.plainByDefault !== true);
    // Certificates that cannot be read are refused here, not by the first call.
    if (endpoint.secure) context ??= contextOf(tls ?? {});
    return new EngineLink(endpoint, {
      tls: endpoint.secure ? () => tlsOptions(endpoint, context!, tls ?? {}) : undefined,
      dialTimeoutMs: options.dialTimeoutMs ?? DEFAULT_DIAL_TIMEOUT_MS,
      maxRequestBytes: options.maxRequestBytes ?? Number.POSITIVE_INFINITY,
      limits: {
        ...(options.maxResponseBytes === undefined
          ? {}
          : { maxMessageBytes: options.maxResponseBytes }),
        ...(options.keepaliveTimeMs === undefined
          ? {}
          : {
              keepAliveTimeMs: options.keepaliveTimeMs,
              keepAliveTimeoutMs: options.keepaliveTimeoutMs ?? 6000,
            }),
      },
    });
  };
  const links = options.endpoints.map(openLink);
  return clientOver(links, { openLink, first: Math.floor(Math.random() * links.length) }, options);
}

/** What a client is made of besides its links. */
export interface ClientParts {
  /** Links to endpoints that are not the client's own. */
  readonly openLink: OpenLink;
  /** The index of the link that is used first. */
  readonly first: number;
  /** The process's, if absent. */
  readonly clock?: ClientClock;
  readonly timer?: ClientTimer;
}

/** A client over links that are there, with the options that concern calls. */
export function clientOver(
  links: readonly Link[],
  parts: ClientParts,
  options: Pick<ClientOptions, "auth" | "timeoutMs" | "dialTimeoutMs" | "maxPendingCalls">,
): Client {
  const limits = {
    timeoutMs: options.timeoutMs ?? 5000,
    dialTimeoutMs: options.dialTimeoutMs ?? DEFAULT_DIAL_TIMEOUT_MS,
    maxPendingCalls: options.maxPendingCalls ?? 10_000,
  };
  const failover = new Failover(links, limits, parts.clock ?? clock, parts.first);
  return new Client(failover, parts.openLink, options.auth, parts.timer ?? timer, tracer);
}
