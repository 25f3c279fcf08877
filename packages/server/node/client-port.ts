/** The ports for clients: gRPC and HTTP over an engine with its share of the budgets. */
import type { HttpExchangeHandler, ServiceTable } from "@quorate/rpc";
import { EngineServer, type EngineServerOptions, type ListenAddress } from "@quorate/rpc/node";
import type { Budgets, MemberUrl, ServerConfig } from "../src/config/index.ts";
import type { Member } from "../src/member/member.ts";
import { rpcObserver } from "../src/services/observer.ts";
import { SlowCalls } from "../src/services/slow-calls.ts";
import { listenAddress } from "./listen.ts";
import type { ProcessDeps, Resources } from "./resources.ts";

/** What gRPC adds to a request's bytes at the most (etcd: grpcOverheadBytes). */
const GRPC_OVERHEAD_BYTES = 512 * 1024;

/** The server for a member's clients; it has still to listen. */
export function clientServer(
  config: ServerConfig,
  { clock, logger }: ProcessDeps,
  { budgets, clientTls }: Resources,
  member: Member,
  { services, http }: { readonly services: ServiceTable; readonly http: HttpExchangeHandler },
): EngineServer {
  const maxRequestBytes = config.maxRequestBytes + GRPC_OVERHEAD_BYTES;
  const grpcServes = config.listenClientHttpUrls.length > 0 ? "grpc" : "all";
  const httpUrls = [...config.listenClientHttpUrls, ...config.listenMetricsUrls];
  return new EngineServer(
    {
      tls: clientTls,
      limits: engineLimits(budgets, maxRequestBytes),
      maxRequestBytes,
      maxConcurrentStreams: Math.min(config.maxConcurrentStreams, 2 ** 31 - 1),
      grpcKeepAliveMinTimeMs: config.grpcKeepalive.minTimeMs,
      grpcKeepAliveIntervalMs: config.grpcKeepalive.intervalMs,
      grpcKeepAliveTimeoutMs: config.grpcKeepalive.timeoutMs,
      listen: [
        ...shared(budgets.clientConnections, config.listenClientUrls, grpcServes),
        ...shared(budgets.httpConnections, httpUrls, "http"),
      ],
    },
    {
      ...{ services, http, clock },
      logger: logger.child("rpc"),
      observer: rpcObserver(
        member.metrics,
        clock,
        new SlowCalls(config.warningUnaryRequestDurationMs, clock, logger.child("v3rpc")),
      ),
    },
  );
}

/** Addresses to listen on, that share connections equally: none may take another's. */
function shared(
  connections: number,
  urls: readonly MemberUrl[],
  serves: ListenAddress["serves"],
): ListenAddress[] {
  const maxConnections = Math.max(1, Math.floor(connections / Math.max(1, urls.length)));
  return urls.map((url) => ({ ...listenAddress(url, serves), maxConnections }));
}

/**
 * The engine's share of the budgets. A connection may always hold two of the largest requests that
 * are allowed.
 */
function engineLimits(budgets: Budgets, maxRequestBytes: number): EngineServerOptions["limits"] {
  return {
    maxHeldTotalBytes: Math.max(budgets.requestsTotalBytes, 4 * maxRequestBytes),
    maxHeldBytes: Math.max(budgets.requestsConnectionBytes, 2 * maxRequestBytes),
    maxHeadTotalBytes: budgets.headersTotalBytes,
    maxHeadBytes: budgets.headersConnectionBytes,
    maxPendingTotalBytes: budgets.answersTotalBytes,
    maxPendingBytes: budgets.answersConnectionBytes,
    maxUnsentTotalBytes: budgets.unsentTotalBytes,
  };
}
