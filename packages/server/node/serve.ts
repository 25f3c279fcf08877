/**
 * A member among real sockets: the peer transport, the client port with gRPC and HTTP, and the
 * metrics port.
 *
 *     acquire (resources.ts): doors open -> member starts -> metrics served -> member is ready
 *     -> clients served, those that waited first -> ... -> release
 */

import type { Console } from "@quorate/console";
import type { HttpHandler } from "@quorate/host";
import { type Logger, plainError } from "@quorate/host";
import { type LogCounts, nodeDisk } from "@quorate/host/node";
import { AUTH_READINGS, Member, type MemberDeps } from "@quorate/member";
import { logMetrics, processMetrics } from "@quorate/metrics/node";
import { errorOf } from "@quorate/proto";
import type { ServiceTable } from "@quorate/rpc";
import { pageTable, serviceTable, toStatusError, withStandardServices } from "@quorate/services";
import { directoryExpiry } from "@quorate/v2";
import { servedIdentity } from "../src/audit/settings.ts";
import type { ServerConfig } from "../src/config/server-config.ts";
import { httpRouter } from "../src/http/endpoints.ts";
import { peerEndpoints, versionOf } from "../src/http/peer-endpoints.ts";
import type { RunningAudit } from "./audit/index.ts";
import { callObserver, metricsServer } from "./client-port.ts";
import { httpSide } from "./http-endpoints.ts";
import { memberDeps } from "./member-deps.ts";
import { acquire, type ProcessDeps, type Resources } from "./resources.ts";
import { type ClientPort, clientPort } from "./served-port.ts";
import { settingMetrics } from "./setting-metrics.ts";
import { reloadMetrics, tlsMetrics } from "./tls-metrics.ts";
import type { Tracing } from "./tracing/index.ts";

/**
 * A member that has no quorum yet serves all the same after this long (etcd:
 * --experimental-wait-cluster-ready-timeout).
 */
const WAIT_READY_MS = 5000;
/** How long calls that are under way may take at a stop. */
const CLOSE_GRACE_MS = 3000;
const REMOVED = "the member has been permanently removed from the cluster";

/** A member that serves. */
export interface ServingMember {
  readonly member: Member;
  /** For calls from this process. */
  readonly services: ServiceTable;
  /** Hands leadership over, lets calls end, syncs and closes. */
  stop(): Promise<void>;
  /** Closes at once: nothing is handed over, and calls are cut off. */
  kill(): Promise<void>;
  /** Opens the audit log again before its next line, as something has moved its file away. */
  reopenAudit(): void;
  /**
   * Reads certificates, authorities and revocation lists again now, not only at the next regular
   * look.
   */
  checkTls(): Promise<void>;
}

/** What a running member needs from its process. */
export interface ServeDeps extends ProcessDeps {
  /** Size of a segment of the WAL, a multiple of 8; etcd's 64 MB if absent. */
  readonly walSegmentBytes?: number;
  /** Changes what the member is started with, such as its disk. */
  readonly adapt?: (deps: MemberDeps) => MemberDeps;
  /** Goes around the services, for whichever way calls come. */
  readonly around?: (services: ServiceTable) => ServiceTable;
  /** Further pages of the ports for metrics, by path. */
  readonly metricsPages?: (member: Member) => ReadonlyMap<string, HttpHandler>;
  /** What the process's log has dropped and holds, where it counts that. */
  readonly logCounts?: () => LogCounts;
  /**
   * The member has stopped by itself: with an error, or without one after it was removed from the
   * cluster.
   */
  onEnd(error: unknown): void;
}

/**
 * Starts a member and serves its clients; resolves when it does. Rejects, with everything closed,
 * if that does not work, or if the member ends before it serves, as one that was removed does.
 */
export async function serve(config: ServerConfig, given: ServeDeps): Promise<ServingMember> {
  const page = config.http.isConsoleOn ? await consoleStart(config, given) : undefined;
  const deps = page === undefined ? given : { ...given, logger: page.logger };
  const resources = await acquire(config, deps);
  const early = Promise.withResolvers<never>();
  // Nobody waits for it once the member serves.
  early.promise.catch(() => {});
  const opened: Opened = { servers: [], audit: undefined, ended: early.promise };
  let peerHttp: HttpHandler = () => plainError(503, "the member is starting");
  const adapt = deps.adapt ?? ((unchanged) => unchanged);
  const memberParts: MemberDeps = {
    ...memberDeps(config, deps, resources, (request) => peerHttp(request)),
    walSegmentBytes: deps.walSegmentBytes,
    beforeRevoke: directoryExpiry,
    onEnd: (error) => {
      resources.release();
      closeAtOnce(opened).finally(() => {
        deps.onEnd(error);
        early.reject(error ?? new Error(REMOVED));
      });
    },
  };
  const member = await Member.start(config, adapt(memberParts)).catch((error) => {
    resources.release();
    throw error;
  });
  const shown = page?.open(member, resources);
  if (shown !== undefined) resources.onRelease(shown.close);
  peerHttp = httpRouter(
    new Map([...peerEndpoints(member, versionOf(member)), ...(shown?.peerEndpoints ?? [])]),
  );
  try {
    return await startServing(config, deps, resources, member, opened, shown);
  } catch (error) {
    await member.stop();
    resources.release();
    throw error;
  }
}

/** The console, loaded only where it is on: it keeps the lines of the log from here on. */
async function consoleStart({ dataDir }: ServerConfig, { clock, logger }: ServeDeps) {
  const { LogRing, openConsole } = await import("@quorate/console");
  const { pageFiles } = await import("@quorate/console/node");
  const log = new LogRing(clock);
  const freeBytes = (): number | undefined => {
    try {
      return nodeDisk.freeBytes(dataDir);
    } catch {
      return undefined;
    }
  };
  return {
    logger: log.around(logger),
    open: (member: Member, { peerCalls }: Resources): Console =>
      openConsole(member, { files: pageFiles, log, callPeer: peerCalls.call, freeBytes }),
  };
}

/** What a member that ends by itself has still to close. */
interface Opened {
  readonly servers: ClientPort[];
  audit: RunningAudit | undefined;
  /** Rejects when the member ends by itself, with the reason. */
  readonly ended: Promise<never>;
}

/** Ends all connections, then writes the lines that the audit log holds. Never rejects. */
async function closeAtOnce({ servers, audit }: Opened): Promise<void> {
  await Promise.allSettled(servers.map((server) => server.close(0)));
  await audit?.stop().catch(() => {});
}

/**
 * Makes the member observable and serves its ports: those for metrics at once, those for clients
 * when it is ready, as etcd does. Until then clients wait at the doors.
 * @param opened what is opened is added, for the member's own end
 */
async function startServing(
  config: ServerConfig,
  deps: ServeDeps,
  resources: Resources,
  member: Member,
  opened: Opened,
  page: Console | undefined,
): Promise<ServingMember> {
  addMetrics(config, deps, resources, member);
  const tracing = await tracingOf(config, deps, resources, member);
  try {
    opened.audit = await auditOf(config, deps, member);
    return await open(config, deps, resources, member, opened, { tracing, page });
  } catch (error) {
    await closeAtOnce(opened);
    await tracing?.stop();
    throw error;
  }
}

/** Serves the ports, with all that goes on around calls. */
async function open(
  config: ServerConfig,
  deps: ServeDeps,
  resources: Resources,
  member: Member,
  { servers, audit, ended }: Opened,
  { tracing, page }: { readonly tracing: Tracing | undefined; readonly page: Console | undefined },
): Promise<ServingMember> {
  const audited = (tableOf: typeof serviceTable) =>
    audit === undefined ? tableOf(member) : audit.around(tableOf(member, (handler) => handler));
  const traced = (table: ServiceTable) => tracing?.around(table) ?? table;
  const standard = withStandardServices(audited(serviceTable));
  const around = deps.around ?? ((services: ServiceTable) => services);
  const services = around(traced(standard.services));
  const pages = traced(audited(pageTable));
  const observer = callObserver(config, deps, member);
  const parts = { services, pages, observer, metricsPages: deps.metricsPages?.(member) };
  const http = await httpSide(config, deps, member, parts, page);
  const served = { services, http: http.client, observer };
  const client = await clientPort(config, deps, resources, served, member.metrics.registry);
  servers.push(client);
  const metrics = metricsServer(config, deps, resources, http.metrics);
  if (metrics !== undefined) {
    servers.push(metrics);
    await metrics.listen();
    for (const { text } of config.listenMetricsUrls)
      deps.logger.info("serving metrics", { address: text });
  }
  const isReady = await Promise.race([untilReady(member, deps), ended]);
  await client.listen();
  logServing(config, member, isReady, deps.logger);
  return {
    member,
    services,
    kill: async () => {
      await closeAtOnce({ servers, audit, ended });
      // What could not be written any more is lost, as it would be.
      await member.stop().catch(() => {});
      await tracing?.stop();
      resources.release();
    },
    stop: async () => {
      await member.handOver();
      standard.health.close();
      // They would last until the grace is over: their clients go on at another member at once.
      const stopped = errorOf("Stopped");
      member.watches.end(toStatusError(stopped));
      for (const stream of [...member.leases.streams]) stream.fail(stopped);
      await Promise.all(servers.map((one) => one.close(CLOSE_GRACE_MS)));
      await member.stop();
      await audit?.stop();
      await tracing?.stop();
      resources.release();
    },
    reopenAudit: () => audit?.reopen(),
    checkTls: async () => {
      const { peerTls, clientTls, signedTokens } = resources;
      await Promise.all([peerTls?.check(), clientTls?.check(), signedTokens?.keys.check()]);
    },
  };
}

/** Whether the member is ready; false when that takes too long. */
async function untilReady(member: Member, { clock, logger }: ServeDeps): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = clock.after(WAIT_READY_MS, () => {
    // It answers its peers alone, and ends by itself.
    if (member.store.membership.isRemoved(member.id)) return;
    logger.warn("timed out waiting for the ready notification; serving all the same", {
      timeout: `${WAIT_READY_MS}ms`,
      advice: "it is not ready before a quorum of the members has a leader: start the others",
    });
    late.resolve(false);
  });
  const isReady = await Promise.race([member.ready.then(() => true), late.promise]);
  timer.cancel();
  return isReady;
}

function addMetrics(
  config: ServerConfig,
  { clock, logCounts }: ServeDeps,
  resources: Resources,
  member: Member,
): void {
  const { registry } = member.metrics;
  resources.onRelease(processMetrics(registry));
  if (logCounts !== undefined) logMetrics(registry, logCounts);
  const clockHelp = "This member's clock at the moment of the scrape, in seconds since 1970.";
  registry.gauge("quorate_server_clock_seconds", clockHelp, () => clock.wallMs() / 1000);
  registry.gauge(
    "quorate_server_leases",
    "Leases that have not ended.",
    () => member.store.lessor.count,
  );
  tlsMetrics(registry, { client: resources.clientTls, peer: resources.peerTls });
  for (const declare of AUTH_READINGS) declare(registry, member);
  reloadMetrics(registry, {
    client_tls: resources.clientTls,
    peer_tls: resources.peerTls,
    tokens: resources.signedTokens?.keys,
  });
  resources.signedTokens?.declareMetrics(registry);
  settingMetrics(registry, config);
  registry.gauge(
    "quorate_server_healing",
    "1 while the member fetches the leader's store in place of its own, else 0.",
    () => (member.corruption.isHealing ? 1 : 0),
  );
}

/** Tracing, loaded only where it is on. */
async function tracingOf(
  config: ServerConfig,
  { clock, logger }: ServeDeps,
  { random }: Resources,
  member: Member,
): Promise<Tracing | undefined> {
  if (!config.tracing.isOn) return undefined;
  const { startTracing } = await import("./tracing/index.ts");
  const parts = { clock, random, logger: logger.child("tracing") };
  return startTracing(config.tracing, member, parts);
}

/** The audit log, loaded only where it is on. */
async function auditOf(
  config: ServerConfig,
  { clock, logger }: ServeDeps,
  member: Member,
): Promise<RunningAudit | undefined> {
  if (config.audit === undefined) return undefined;
  const { startAudit } = await import("./audit/index.ts");
  return startAudit(config.audit, {
    clock,
    logger: logger.child("audit"),
    registry: member.metrics.registry,
    identityOf: (context) => servedIdentity(member.auth.authority, context),
  });
}

/** Logs that it is ready, when it takes part in a working cluster, and the addresses now. */
function logServing(config: ServerConfig, member: Member, isReady: boolean, logger: Logger): void {
  const logReady = () => logger.info("ready to serve client requests");
  if (isReady) logReady();
  else void member.ready.then(logReady);
  for (const url of config.listenClientUrls) {
    const secure = url.scheme === "https" || url.scheme === "unixs";
    const message = secure
      ? "serving client traffic securely"
      : "serving client traffic insecurely; this is strongly discouraged!";
    logger.info(message, {
      traffic: "grpc+http",
      address: url.path || `${url.host}:${url.port}`,
    });
  }
}
