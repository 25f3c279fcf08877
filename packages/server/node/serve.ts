/**
 * A member among real sockets: the peer transport, the client port with gRPC and HTTP, and the
 * metrics port.
 */
import { randomBytes } from "node:crypto";
import type { Clock, Logger } from "@quorate/host";
import {
  levelKeyspaces,
  machineLimits,
  nodeDisk,
  nodeNames,
  nodeRandom,
  TlsFileSource,
} from "@quorate/host/node";
import { errorOf } from "@quorate/proto";
import type { HttpHandler } from "@quorate/rpc";
import { EngineServer, type EngineServerOptions, type ListenAddress } from "@quorate/rpc/node";
import { Http2Transport, PeerCalls } from "@quorate/transport/node";
import { servedIdentity } from "../src/audit/served-identity.ts";
import {
  type Budgets,
  budgetsFor,
  type MemberUrl,
  type ServerConfig,
  type TlsConfig,
} from "../src/config/index.ts";
import { httpRouter, versionEndpoint } from "../src/http/endpoints.ts";
import { checkEndpoints, healthEndpoint, plainError } from "../src/http/health.ts";
import { memberHealth } from "../src/http/member-health.ts";
import { peerEndpoints } from "../src/http/peer-endpoints.ts";
import { SharedAnswer } from "../src/http/shared-answer.ts";
import { Member } from "../src/member/member.ts";
import { authMetrics } from "../src/metrics/auth-metrics.ts";
import { answerLimitsFor } from "../src/reads/answer-memory.ts";
import { rpcObserver } from "../src/services/observer.ts";
import { SlowCalls } from "../src/services/slow-calls.ts";
import { type StandardServices, withStandardServices } from "../src/services/standard.ts";
import { toStatusError } from "../src/services/status.ts";
import { serviceTable } from "../src/services/table.ts";
import { MIN_CLUSTER_VERSION, SERVER_VERSION } from "../src/version.ts";
import { WATCH_LIMITS } from "../src/watch/index.ts";
import type { RunningAudit } from "./audit/index.ts";
import { bcryptHasher, hashThreads } from "./bcrypt-hasher.ts";
import { debugVarsEndpoint } from "./debug-vars.ts";
import { engineMetrics } from "./engine-metrics.ts";
import { checkFree, listenAddress, tlsFiles } from "./listen.ts";
import { peerConnectionMetrics, transportObserver } from "./peer-metrics.ts";
import { closeFolders } from "./private-folders.ts";
import { processMetrics } from "./process-metrics.ts";
import { prometheusExposition } from "./prometheus.ts";
import { reloadMetrics } from "./reload-metrics.ts";
import { ensureSelfCert } from "./self-cert.ts";
import { settingMetrics } from "./setting-metrics.ts";
import { tlsMetrics } from "./tls-metrics.ts";
import { openSignedTokens } from "./tokens.ts";
import type { Tracing } from "./tracing/index.ts";

/**
 * A member that has no quorum yet serves all the same after this long (etcd:
 * --experimental-wait-cluster-ready-timeout).
 */
const WAIT_READY_MS = 5000;
/** How long calls that are under way may take at a stop. */
const CLOSE_GRACE_MS = 3000;
/** What gRPC adds to a request's bytes at the most (etcd: grpcOverheadBytes). */
const GRPC_OVERHEAD_BYTES = 512 * 1024;

/** A member that serves. */
export interface ServingMember {
  readonly member: Member;
  /** Hands leadership over, lets calls end, syncs and closes. */
  stop(): Promise<void>;
  /**
   * Opens the audit log again before its next line, as something has moved its file away.
   */
  reopenAudit(): void;
  /**
   * Reads certificates, authorities and revocation lists again now, not only at the next regular
   * look.
   */
  checkTls(): Promise<void>;
}

/** What a running member needs from its process. */
export interface ServeDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * The member has stopped by itself: with an error, or without one after it was removed from the
   * cluster.
   */
  onEnd(error: unknown): void;
}

/**
 * Starts a member and serves its clients; resolves when it does. Rejects, with everything closed,
 * if that does not work.
 */
export async function serve(config: ServerConfig, deps: ServeDeps): Promise<ServingMember> {
  const { clock, logger } = deps;
  const machine = machineLimits();
  const budgets = budgetsFor(machine);
  logger.info("what this member may use of its machine", {
    "memory-bytes": machine.memoryBytes,
    "open-files": machine.openFiles,
    "client-connections": budgets.clientConnections,
    "http-connections": budgets.httpConnections,
    "peer-connections": budgets.peerConnections,
  });
  await checkFree(config.listenPeerUrls, [
    ...config.listenClientUrls,
    ...config.listenClientHttpUrls,
    ...config.listenMetricsUrls,
  ]);

  closeFolders(config, logger);
  for (const [tls, caller] of [
    [config.peerTls, "transport"],
    [config.clientTls, "rpc"],
  ] as const) {
    if (tls?.selfCert !== undefined)
      await ensureSelfCert(tls.selfCert, clock, logger.child(caller));
  }
  const tlsSource = (tls: TlsConfig | undefined, caller: string) =>
    tls && new TlsFileSource(tlsFiles(tls), { clock, logger: logger.child(caller) });
  const peerTls = tlsSource(config.peerTls, "transport");
  const clientTls = tlsSource(config.clientTls, "rpc");

  const signed =
    config.jwt && (await openSignedTokens(config.jwt, { clock, logger: logger.child("auth") }));

  const servers: EngineServer[] = [];
  const random = nodeRandom();
  let member: Member | undefined;
  let standard: StandardServices | undefined;
  let tracing: Tracing | undefined;
  let audit: RunningAudit | undefined;
  const version = {
    serverVersion: SERVER_VERSION,
    clusterVersion: () => member?.store.membership.clusterVersion ?? "not_decided",
    storageVersion: SERVER_VERSION,
  };
  const peerCalls = new PeerCalls(peerTls);
  let stopProcessMetrics: (() => void) | undefined;
  const release = () => {
    signed?.keys.close();
    peerTls?.close();
    clientTls?.close();
    peerCalls.close();
    stopProcessMetrics?.();
  };
  let peerHttp: HttpHandler = () => plainError(503, "the member is starting");
  const started = await Member.start(config, {
    clock,
    random,
    disk: nodeDisk,
    keyspaces: levelKeyspaces,
    logger,
    answerLimits: answerLimitsFor(budgets),
    openTransport: async (request) => {
      const transport = new Http2Transport(
        {
          selfId: request.memberId,
          clusterId: request.clusterId,
          localUrls: config.advertisePeerUrls.map((url) => url.text),
          listen: config.listenPeerUrls.map((url) => {
            const { host, port, secure } = listenAddress(url);
            return { host: host ?? "", port: port ?? 0, secure };
          }),
          tls: peerTls,
          skipClientSanVerification: config.peerTls?.skipClientSanVerify,
          serverVersion: SERVER_VERSION,
          minClusterVersion: MIN_CLUSTER_VERSION,
          maxIncomingConnections: budgets.peerConnections,
        },
        {
          clock,
          random,
          logger: logger.child("transport"),
          listener: request.listener,
          http: (httpRequest) => peerHttp(httpRequest),
          observer: transportObserver(
            request.metrics,
            request.memberId,
            request.questions.isRemoved,
          ),
          ...request.questions,
        },
      );
      await transport.listen();
      peerConnectionMetrics(request.metrics.registry, () => transport.slotCounters);
      return transport;
    },
    callPeer: peerCalls.call,
    watchLimits: {
      ...WATCH_LIMITS,
      maxTotalBacklogBytes: budgets.watchBacklogTotalBytes,
      maxWatchesTotalBytes: budgets.watchesTotalBytes,
      maxWatchesClientBytes: budgets.watchesClientBytes,
      maxContestTotalBytes: budgets.contestsTotalBytes,
      maxContestClientBytes: budgets.contestsClientBytes,
    },
    names: nodeNames,
    secrets: {
      randomBytes,
      hasher: bcryptHasher(),
      threads: hashThreads(),
      tokens: signed?.provider,
    },
    onEnd: (error) => {
      release();
      Promise.all(servers.map((server) => server.close(0))).then(
        () => deps.onEnd(error),
        () => deps.onEnd(error),
      );
    },
  }).catch((error) => {
    release();
    throw error;
  });
  member = started;
  peerHttp = httpRouter(peerEndpoints(started, version));

  try {
    let giveUp: (() => void) | undefined;
    const timer = clock.after(WAIT_READY_MS, () => {
      // It answers its peers alone, and ends by itself.
      if (started.store.membership.isRemoved(started.id)) return;
      logger.warn("timed out waiting for the ready notification; serving all the same", {
        timeout: `${WAIT_READY_MS}ms`,
      });
      giveUp?.();
    });
    await Promise.race([
      started.ready,
      new Promise<void>((resolve) => {
        giveUp = resolve;
      }),
    ]);
    timer.cancel();

    engineMetrics(started.metrics.registry, () => servers[0].counters());
    stopProcessMetrics = processMetrics(started.metrics.registry);
    const clockHelp = "This member's clock at the moment of the scrape, in seconds since 1970.";
    started.metrics.registry.gauge(
      "quorate_server_clock_seconds",
      clockHelp,
      () => clock.wallMs() / 1000,
    );
    started.metrics.registry.gauge(
      "quorate_server_leases",
      "Leases that have not ended.",
      () => started.store.lessor.count,
    );
    tlsMetrics(started.metrics.registry, { client: clientTls, peer: peerTls });
    authMetrics(started.metrics.registry, {
      authRevision: () => started.store.auth.revision,
      isEnabled: () => started.store.auth.isEnabled,
      tokens: () => started.auth.tokens.size,
      failedLogins: () => started.auth.logins.failures,
      refusedLogins: () => started.auth.logins.refusals,
      waitingHashes: () => started.auth.passwords.waiting,
    });
    reloadMetrics(started.metrics.registry, {
      client_tls: clientTls,
      peer_tls: peerTls,
      tokens: signed?.keys,
    });
    signed?.declareMetrics(started.metrics.registry);
    settingMetrics(started.metrics.registry, config);
    const isHealing = () => (started.corruption.isHealing ? 1 : 0);
    started.metrics.registry.gauge(
      "quorate_server_healing",
      "1 while the member fetches the leader's store in place of its own, else 0.",
      isHealing,
    );
    // What is not on is not loaded.
    if (config.tracing.isOn) {
      const { startTracing } = await import("./tracing/index.ts");
      tracing = startTracing(config.tracing, started, {
        clock,
        random,
        logger: logger.child("tracing"),
      });
    }
    if (config.audit !== undefined) {
      const { startAudit } = await import("./audit/index.ts");
      audit = await startAudit(config.audit, {
        clock,
        logger: logger.child("audit"),
        registry: started.metrics.registry,
        identityOf: (context) => servedIdentity(started.auth.authority, context),
      });
    }
    const http = httpRouter(httpEndpoints(started, version, logger.child("etcdhttp")));
    const options: Omit<EngineServerOptions, "listen"> = {
      tls: clientTls,
      limits: engineLimits(budgets, config.maxRequestBytes + GRPC_OVERHEAD_BYTES),
      maxRequestBytes: config.maxRequestBytes + GRPC_OVERHEAD_BYTES,
      maxConcurrentStreams: Math.min(config.maxConcurrentStreams, 2 ** 31 - 1),
      grpcKeepAliveMinTimeMs: config.grpcKeepalive.minTimeMs,
      grpcKeepAliveIntervalMs: config.grpcKeepalive.intervalMs,
      grpcKeepAliveTimeoutMs: config.grpcKeepalive.timeoutMs,
    };
    const own = serviceTable(started);
    standard = withStandardServices(audit?.around(own) ?? own);
    const grpcServes = config.listenClientHttpUrls.length > 0 ? "grpc" : "all";
    const server = new EngineServer(
      {
        ...options,
        listen: [
          ...shared(budgets.clientConnections, config.listenClientUrls, grpcServes),
          ...shared(
            budgets.httpConnections,
            [...config.listenClientHttpUrls, ...config.listenMetricsUrls],
            "http",
          ),
        ],
      },
      {
        services: tracing?.around(standard.services) ?? standard.services,
        http,
        clock,
        logger: logger.child("rpc"),
        observer: rpcObserver(
          started.metrics,
          clock,
          new SlowCalls(config.warningUnaryRequestDurationMs, clock, logger.child("v3rpc")),
        ),
      },
    );
    servers.push(server);
    await server.listen();
  } catch (error) {
    await audit?.stop();
    await started.stop();
    release();
    throw error;
  }
  logger.info("ready to serve client requests");
  for (const url of config.listenClientUrls) {
    const secure = url.scheme === "https" || url.scheme === "unixs";
    logger.info(
      secure
        ? "serving client traffic securely"
        : "serving client traffic insecurely; this is strongly discouraged!",
      {
        traffic: "grpc+http",
        address: url.path || `${url.host}:${url.port}`,
      },
    );
  }
  return {
    member: started,
    stop: async () => {
      await started.handOver();
      standard?.health.close();
      // They would last until the grace is over: their clients go on at another member at once.
      started.watches.end(toStatusError(errorOf("Stopped")));
      await Promise.all(servers.map((server) => server.close(CLOSE_GRACE_MS)));
      await started.stop();
      await audit?.stop();
      await tracing?.stop();
      release();
    },
    reopenAudit: () => audit?.reopen(),
    checkTls: async () => {
      await Promise.all([peerTls?.check(), clientTls?.check(), signed?.keys.check()]);
    },
  };
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

function httpEndpoints(
  member: Member,
  version: Parameters<typeof versionEndpoint>[0],
  logger: Logger,
): ReadonlyMap<string, HttpHandler> {
  const health = memberHealth(member);
  const exposition = prometheusExposition(member.metrics.registry);
  // Anybody who reaches the port may ask, and it takes some milliseconds.
  const metrics = new SharedAnswer(member.clock, async () => exposition.text());
  return new Map<string, HttpHandler>([
    ["/health", healthEndpoint(health, member.metrics, logger)],
    ...checkEndpoints(health, member.metrics, logger),
    ["/version", versionEndpoint(version)],
    ["/debug/vars", debugVarsEndpoint(() => member.leadership.status())],
    [
      "/metrics",
      async () => ({
        status: 200,
        headers: { "content-type": exposition.contentType },
        body: await metrics.ask(),
      }),
    ],
  ]);
}
