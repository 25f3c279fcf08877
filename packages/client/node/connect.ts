/** connect(): makes a client from options, with one link per endpoint. */
import { tracingChannel } from "node:diagnostics_channel";
import { isIP } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConnectionOptions, SecureContext } from "node:tls";
import {
  BOUND,
  BYTES,
  CALLBACK,
  check,
  checkOptions,
  FLAG,
  OBJECT,
  oneOf,
  type Shape,
  TEXT,
  TEXTS,
  tlsContext,
} from "@quorate/host";
import { splitAddress } from "@quorate/rpc/client";
import { Client, type Credentials, type OpenLink } from "../src/client.ts";
import { discoverEndpoints, type LookupSrv } from "../src/discovery.ts";
import { type Endpoint, parseEndpoint } from "../src/endpoint.ts";
import { type CircuitOptions, Endpoints, type FindEndpoints } from "../src/endpoints.ts";
import { Failover } from "../src/failover.ts";
import type { ClientClock, ClientTimer, Link } from "../src/link.ts";
import type { Tracer } from "../src/tracing.ts";
import { EngineLink, timerMs } from "./engine-link.ts";

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

/** Endpoints by DNS, as etcdctl's --discovery-srv finds them. */
export interface DiscoveryOptions {
  /**
   * The domain of the records _etcd-client-ssl._tcp and _etcd-client._tcp. With `tls`, endpoints of
   * the second, which have none, are not used.
   */
  readonly domain: string;
  /** Suffix of both services, after a hyphen. */
  readonly serviceName?: string;
  /**
   * The records of _service._tcp.domain, by priority. Rejects where there are none. Default: the
   * system's name servers.
   */
  readonly lookup?: LookupSrv;
}

/** What connect() takes. */
export interface ClientOptions {
  /**
   * "host:port" or URLs; at least one, unless `discovery` is given. Those without a scheme use TLS
   * if `tls` is given.
   */
  readonly endpoints?: readonly string[];
  /**
   * Finds the endpoints at the first call, up to 64, and again when all have failed; not beside
   * `endpoints`.
   */
  readonly discovery?: DiscoveryOptions;
  /**
   * Where calls go. Default: to one endpoint until it fails. "leader": to the leader, which saves
   * a hop; every endpoint is asked for its status at most every 5 seconds, while calls are made,
   * and one that knows no leader, or is a learner, is used last.
   */
  readonly prefer?: "leader";
  /**
   * When an endpoint is left out while others serve: after so many failures without a success
   * between (default 3), for `openMs` (default 1000), longer each time up to 30 seconds. Then one
   * call tries it. A call without an answer for `dialTimeoutMs` is a failure, too.
   */
  readonly circuit?: Partial<CircuitOptions>;
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
  /**
   * How long a ping may stay unanswered; default 6000. A silent connection is also pinged when a
   * call on it ends by its timeout.
   */
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
  discovery: OBJECT,
  prefer: oneOf(["leader"]),
  circuit: OBJECT,
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

const DISCOVERY_SHAPE: Shape<DiscoveryOptions> = {
  domain: TEXT,
  serviceName: TEXT,
  lookup: CALLBACK,
};

const CIRCUIT_SHAPE: Shape<CircuitOptions> = { failures: BOUND, openMs: BOUND };

const AUTH_SHAPE = { name: TEXT, password: TEXT, token: TEXT };

const DEFAULT_DIAL_TIMEOUT_MS = 2000;
const CIRCUIT: CircuitOptions = { failures: 3, openMs: 1000 };

/** Held here: the global one is found by a getter, at each use. */
const time = performance;

const clock = {
  nowMs: () => time.now(),
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
  const { tls, discovery, endpoints = [] } = options;
  if (tls !== undefined) checkOptions("connect: tls", tls, TLS_SHAPE);
  if (options.auth !== undefined)
    checkOptions<Record<string, unknown>>("connect: auth", { ...options.auth }, AUTH_SHAPE);
  if (options.circuit !== undefined)
    checkOptions("connect: circuit", options.circuit, CIRCUIT_SHAPE);
  if (discovery !== undefined) {
    checkOptions("connect: discovery", discovery, DISCOVERY_SHAPE);
    check("connect: discovery", "domain", discovery.domain, TEXT);
    if (endpoints.length > 0) throw new TypeError("connect: give endpoints or discovery, not both");
  }
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
          : { keepAliveTimeMs: options.keepaliveTimeMs }),
        keepAliveTimeoutMs: options.keepaliveTimeoutMs ?? 6000,
      },
    });
  };
  const links = endpoints.map(openLink);
  const first = Math.floor(Math.random() * links.length);
  const find = discovery && (() => found(discovery, tls === undefined));
  return clientOver(links, { openLink, first, find }, options);
}

/** The endpoints in the records. @param takesPlain also those without TLS */
async function found(
  { domain, serviceName = "", lookup }: DiscoveryOptions,
  takesPlain: boolean,
): Promise<readonly string[]> {
  // Loaded here: few programs look for names.
  const ask = lookup ?? (await import("@quorate/host/client")).nodeNames.lookupSrv;
  return discoverEndpoints({ domain, serviceName, takesPlain }, ask, () => {});
}

/** What a client is made of besides its links. */
export interface ClientParts {
  /** Links to endpoints that are not the client's own. */
  readonly openLink: OpenLink;
  /** The index of the link that is used first. */
  readonly first: number;
  /** Finds the endpoints where there are no links yet. */
  readonly find?: FindEndpoints | undefined;
  /** The process's, if absent. */
  readonly clock?: ClientClock;
  readonly timer?: ClientTimer;
}

/** A client over links that are there, with the options that concern calls. */
export function clientOver(
  links: readonly Link[],
  parts: ClientParts,
  options: Pick<
    ClientOptions,
    "auth" | "timeoutMs" | "dialTimeoutMs" | "maxPendingCalls" | "prefer" | "circuit"
  >,
): Client {
  const limits = {
    timeoutMs: options.timeoutMs ?? 5000,
    dialTimeoutMs: options.dialTimeoutMs ?? DEFAULT_DIAL_TIMEOUT_MS,
    maxPendingCalls: options.maxPendingCalls ?? 10_000,
    prefersLeader: options.prefer === "leader",
  };
  const time = parts.clock ?? clock;
  const { first, find, openLink } = parts;
  const circuit = { ...CIRCUIT, ...options.circuit };
  const endpoints = new Endpoints(links, time, { first, find, openLink, circuit });
  const failover = new Failover(endpoints, limits, time);
  return new Client(failover, parts.openLink, options.auth, parts.timer ?? timer, tracer);
}

const calls = tracingChannel("quorate:call");
const watches = tracingChannel("quorate:watch");

/**
 * The client's calls on Node's diagnostics channels, where OpenTelemetry, Sentry and others find
 * them without a patch: tracingChannel("quorate:call") and tracingChannel("quorate:watch"), with a
 * CallTrace as context.
 */
const tracer: Tracer = {
  call: (trace, run) => calls.tracePromise(run, trace),
  watch: (trace, run) => watches.tracePromise(run, trace),
};
