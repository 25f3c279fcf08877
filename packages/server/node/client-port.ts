/** The ports for clients: gRPC and HTTP over an engine with its share of the budgets. */
import type { HttpExchangeHandler } from "@quorate/host";
import type { Budgets, Member } from "@quorate/member";
import type { RpcObserver, ServiceTable } from "@quorate/rpc";
import { EngineServer, type EngineServerOptions, type ListenAddress } from "@quorate/rpc/node";
import { rpcObserver, SlowCalls } from "@quorate/services";
import type { ServerConfig } from "../src/config/server-config.ts";
import type { OpenAddress } from "./listen.ts";
import type { ProcessDeps, Resources } from "./resources.ts";

/** What gRPC adds to a request's bytes at the most (etcd: grpcOverheadBytes). */
const GRPC_OVERHEAD_BYTES = 512 * 1024;

/** The longest request in its encoded form, with what gRPC adds. */
export function maxMessageBytes(config: ServerConfig): number {
  return config.maxRequestBytes + GRPC_OVERHEAD_BYTES;
}

/** The observer of a member's calls, by whichever protocol. */
export function callObserver(
  config: ServerConfig,
  { clock, logger }: ProcessDeps,
  member: Member,
): RpcObserver {
  const slow = new SlowCalls(config.warningUnaryRequestDurationMs, clock, logger.child("v3rpc"));
  return rpcObserver(member.metrics, clock, slow);
}

/** What a server for clients serves. */
export interface Served {
  readonly services: ServiceTable;
  readonly http: HttpExchangeHandler;
  readonly observer: RpcObserver;
}

/** The addresses for clients, each with its share of the connections. */
export function clientAddresses({
  budgets,
  ports,
}: Pick<Resources, "budgets" | "ports">): OpenAddress[] {
  return [
    ...shared(budgets.clientConnections, ports.client),
    ...shared(budgets.httpConnections, ports.clientHttp),
  ];
}

/** The server for a member's clients; it has still to listen. */
export function clientServer(
  config: ServerConfig,
  deps: ProcessDeps,
  resources: Resources,
  served: Served,
  addresses: readonly ListenAddress[] = clientAddresses(resources),
): EngineServer {
  return engineServer(config, deps, resources, served, addresses);
}

/** The server of --listen-metrics-urls, which serves no data; undefined without such URLs. */
export function metricsServer(
  config: ServerConfig,
  deps: ProcessDeps,
  resources: Resources,
  http: HttpExchangeHandler,
): EngineServer | undefined {
  const { budgets, ports } = resources;
  if (ports.metrics.length === 0) return undefined;
  const services = { unary: new Map(), stream: new Map() };
  const listen = shared(budgets.httpConnections, ports.metrics);
  return engineServer(config, deps, resources, { services, http }, listen);
}

function engineServer(
  config: ServerConfig,
  { clock, logger }: ProcessDeps,
  { budgets, clientTls }: Resources,
  { services, http, observer }: Omit<Served, "observer"> & Partial<Pick<Served, "observer">>,
  listen: readonly ListenAddress[],
): EngineServer {
  const options = engineOptions(config, budgets, listen);
  return new EngineServer(
    { ...options, tls: clientTls },
    { services, http, clock, observer, logger: logger.child("rpc") },
  );
}

/**
 * The options of an engine besides TLS.
 * @param parts engines that share the budgets equally
 */
export function engineOptions(
  config: ServerConfig,
  budgets: Budgets,
  listen: readonly ListenAddress[],
  parts = 1,
): EngineServerOptions {
  const maxRequestBytes = maxMessageBytes(config);
  return {
    limits: engineLimits(budgets, maxRequestBytes, parts),
    maxRequestBytes,
    maxConcurrentStreams: Math.min(config.maxConcurrentStreams, 2 ** 31 - 1),
    grpcKeepAliveMinTimeMs: config.grpcKeepalive.minTimeMs,
    grpcKeepAliveIntervalMs: config.grpcKeepalive.intervalMs,
    grpcKeepAliveTimeoutMs: config.grpcKeepalive.timeoutMs,
    listen,
  };
}

/** Addresses to listen on, that share connections equally: none may take another's. */
function shared(connections: number, addresses: readonly OpenAddress[]): OpenAddress[] {
  const maxConnections = Math.max(1, Math.floor(connections / Math.max(1, addresses.length)));
  return addresses.map((address) => ({ ...address, maxConnections }));
}

/**
 * An engine's share of the budgets. A connection may always hold two of the largest requests that
 * are allowed.
 */
function engineLimits(
  budgets: Budgets,
  maxRequestBytes: number,
  parts: number,
): EngineServerOptions["limits"] {
  const share = (bytes: number): number => Math.floor(bytes / parts);
  return {
    maxHeldTotalBytes: Math.max(share(budgets.requestsTotalBytes), 4 * maxRequestBytes),
    maxHeldBytes: Math.max(budgets.requestsConnectionBytes, 2 * maxRequestBytes),
    maxHeadTotalBytes: share(budgets.headersTotalBytes),
    maxHeadBytes: budgets.headersConnectionBytes,
    maxPendingTotalBytes: share(budgets.answersTotalBytes),
    maxPendingBytes: budgets.answersConnectionBytes,
    maxUnsentTotalBytes: share(budgets.unsentTotalBytes),
  };
}
