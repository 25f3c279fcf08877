/** `quorate grpc-proxy start` (etcd: etcdmain/grpc_proxy.go). */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { Exit, FlagRefusal, type Invocation } from "@quorate/cli";
import { type Clock, type HttpHandler, type Logger, type Timer, wholeBody } from "@quorate/host";
import {
  ensureSelfCert,
  followTlsFiles,
  handshakeFailure,
  machineLimits,
  type NodeLogger,
  nodeClock,
  nodeLogger,
  nodeNames,
  type TlsFileSource,
} from "@quorate/host/node";
import { processMetrics, prometheusExposition } from "@quorate/metrics/node";
import { ClusterService, MemberListRequest, MemberListResponse } from "@quorate/proto";
import type { ClientLimits } from "@quorate/rpc";
import { Channel, EngineServer, engineMetrics, type ListenAddress } from "@quorate/rpc/node";
import { clusterHealth, healthHandler, proxyHealth } from "../src/http/health.ts";
import { OrderedReads, recoverOrder } from "../src/kv/ordering.ts";
import { GrpcProxy } from "../src/service-table.ts";
import type { MemberChannel } from "../src/upstream/member-channel.ts";
import { ProxyMetrics } from "../src/upstream/metrics.ts";
import { Upstream } from "../src/upstream/upstream.ts";
import { loggedServices } from "./call-log.ts";
import { discover } from "./discovery.ts";
import { memberMetrics, routes } from "./http-endpoints.ts";
import { type ProxyFlags, proxyFlags } from "./proxy-flags.ts";
import { untilStopped } from "./until-stopped.ts";
import {
  checkUpstreamTls,
  hasTlsFlags,
  type UpstreamTlsFlags,
  upstreamTls,
} from "./upstream-tls.ts";

/** How long open calls may take when the proxy ends. */
const GRACE_MS = 2000;
const MIB = 1024 * 1024;
const USER_AGENT = "grpc-quorate-proxy";

/** Runs the proxy until a signal ends it. Throws Exit. */
export async function startGrpcProxy({ flags, io }: Invocation): Promise<void> {
  const fail = (error: unknown): never => {
    io.stderr(`${(error as Error).message}\n`);
    throw new Exit(1, "");
  };
  let options: ProxyFlags;
  try {
    options = proxyFlags(flags);
    checkUpstreamTls(options.upstreamTls);
  } catch (error) {
    if (!(error instanceof FlagRefusal)) throw error;
    return fail(error);
  }
  const level = options.isDebug ? "debug" : "info";
  const logger = nodeLogger({ level, outputs: ["stderr"], format: "json" });
  const running = await run(options, logger).catch(fail);
  if (running === undefined) return;
  await untilStopped(io, logger);
  await running.close();
  logger.info("stop listening gRPC proxy client requests", { address: options.listenText });
  logger.close();
}

/** The proxy's own endpoints take no body. */
const MAX_HTTP_BODY_BYTES = 64 * 1024;

/** A running proxy. */
interface RunningProxy {
  close(): Promise<void>;
}

async function run(options: ProxyFlags, logger: NodeLogger): Promise<RunningProxy> {
  const tls = await listenTls(options, logger);
  const { upstream, settings, follow } = await upstreamOf(options, logger);
  const metrics = new ProxyMetrics();
  const ordered = options.isOrdered ? new OrderedReads(upstream) : undefined;
  if (ordered !== undefined) {
    logger.info("waiting for linearized read from cluster to recover ordering");
    await recoverOrder(upstream, logger);
  }
  const proxy = new GrpcProxy(
    upstream,
    {
      namespace: options.namespace,
      advertised: options.advertised,
      hostname: hostname(),
      resolverPrefix: options.resolver.prefix,
      resolverTtlSeconds: options.resolver.ttlSeconds,
      ordered,
    },
    metrics,
    logger,
  );
  const self = selfOf(options, settings);
  const stopMeasuring = processMetrics(metrics.registry);
  const http = httpSide(options, { upstream, self, metrics });
  if (options.wantsProfiles)
    logger.warn("--enable-pprof has no effect: there are no Go profiles", {
      advice: "set NODE_OPTIONS to --cpu-prof or --inspect",
    });
  const server = new EngineServer(
    { ...serverOptions(options, tls), listen: addresses(options, tls !== undefined) },
    {
      services: options.logsCalls ? loggedServices(proxy.services, logger) : proxy.services,
      http: wholeBody(http, MAX_HTTP_BODY_BYTES, ({ method, path }, error) =>
        logger.warn("failed to handle HTTP request", { method, path, error: String(error) }),
      ),
      clock: nodeClock,
      logger: logger.child("rpc"),
      observer: metrics.observer(),
    },
  );
  engineMetrics(metrics.registry, () => server.counters());
  await server.listen();
  proxy.start();
  logger.info("started gRPC proxy", { address: options.listenText });
  return {
    async close() {
      follow?.cancel();
      stopMeasuring();
      await proxy.close();
      const closed = server.close(GRACE_MS);
      // Streams of clients do not end by themselves.
      upstream.close();
      self?.close();
      await closed;
      tls?.close();
    },
  };
}

/** The certificates that clients see, or undefined without TLS. */
async function listenTls(
  { listenTls: flags, dataDir, listen }: ProxyFlags,
  logger: Logger,
): Promise<TlsFileSource | undefined> {
  const { caFile, crlFile, isAuto, validityYears, ciphers, minVersion, maxVersion } = flags;
  let { certFile, keyFile } = flags;
  if (certFile === "" && keyFile === "" && caFile === "") {
    if (!isAuto) return undefined;
    const dir = `${dataDir}/fixtures/proxy`;
    certFile = `${dir}/cert.pem`;
    keyFile = `${dir}/key.pem`;
    const hosts = [listen.host];
    await ensureSelfCert({ dir, certFile, keyFile, hosts, validityYears }, nodeClock, logger);
  }
  if (certFile === "" || keyFile === "")
    throw new FlagRefusal(
      `KeyFile and CertFile must both be present[key: ${keyFile}, cert: ${certFile}]`,
    );
  logger.info("gRPC proxy server TLS", { "tls-info": `cert = ${certFile}, key = ${keyFile}` });
  return followTlsFiles(
    {
      certFile,
      keyFile,
      ciphers,
      minVersion,
      maxVersion,
      trustedCaFile: caFile || undefined,
      crlFile: crlFile || undefined,
    },
    { clock: nodeClock, logger },
  );
}

async function upstreamOf(options: ProxyFlags, logger: Logger) {
  const { upstreamTls: tls, srv, dialKeepAlive, maxSendBytes, maxReceiveBytes } = options;
  if (tls.skipsVerification)
    logger.warn(
      "--insecure-skip-tls-verify was given, this grpc proxy process skips authentication of etcd " +
        "server TLS certificates. This option should be enabled only for testing purposes.",
    );
  const caPem = tls.caFile === "" ? undefined : readFileSync(tls.caFile, "utf8");
  const found = await discover({ ...srv, caPem }, nodeNames, logger);
  const endpoints = found.length > 0 ? found.map(({ endpoint }) => endpoint) : options.endpoints;
  const settings: ChannelSettings = {
    tls,
    limits: {
      userAgent: USER_AGENT,
      maxMessageBytes: maxReceiveBytes,
      keepAliveTimeMs: dialKeepAlive.timeMs,
      keepAliveTimeoutMs: dialKeepAlive.timeoutMs,
      pingsWhenIdle: dialKeepAlive.whenIdle,
    },
    clock: nodeClock,
  };
  if (endpoints.length === 0) throw new FlagRefusal("etcdclient: no available endpoints");
  const open = (endpoint: string) => channelTo(endpoint, settings);
  const first = Math.floor(Math.random() * endpoints.length);
  const upstream = new Upstream(endpoints.map(open), nodeClock, first, maxSendBytes);
  const follow =
    options.autoSyncMs > 0
      ? followMembers(
          upstream,
          { intervalMs: options.autoSyncMs, open },
          { clock: nodeClock, logger },
        )
      : undefined;
  return { upstream, settings, follow };
}

/** The way to the proxy itself, for /proxy/health. */
function selfOf(options: ProxyFlags, settings: ChannelSettings): Upstream | undefined {
  const { advertised, listenTls: tls } = options;
  if (advertised === "") return undefined;
  const isAuto = tls.isAuto && tls.certFile === "";
  const own = {
    certFile: tls.caFile === "" ? "" : tls.certFile,
    keyFile: tls.caFile === "" ? "" : tls.keyFile,
    caFile: tls.caFile,
    skipsVerification: isAuto,
  };
  const hasTls = isAuto || tls.certFile !== "";
  const endpoint = hasTls && !advertised.includes("://") ? `https://${advertised}` : advertised;
  return new Upstream([channelTo(endpoint, { ...settings, tls: own })], nodeClock);
}

function httpSide(
  options: ProxyFlags,
  {
    upstream,
    self,
    metrics,
  }: {
    readonly upstream: Upstream;
    readonly self: Upstream | undefined;
    readonly metrics: ProxyMetrics;
  },
): HttpHandler {
  let exposition: ReturnType<typeof prometheusExposition> | undefined;
  return routes(
    new Map<string, HttpHandler>([
      [
        "/metrics",
        memberMetrics(() => {
          const { endpoint } = upstream.channel;
          const secure = isSecure(endpoint, options.upstreamTls);
          const address = endpoint.replace(/^https?:\/\//i, "");
          return {
            url: `${secure ? "https" : "http"}://${address}/metrics`,
            tls: { ...upstreamTls(options.upstreamTls, address), ALPNProtocols: ["http/1.1"] },
          };
        }),
      ],
      ["/health", healthHandler(clusterHealth(upstream))],
      ["/proxy/health", healthHandler(proxyHealth(self))],
      [
        "/proxy/metrics",
        async () => {
          // Made at the first scrape: all metrics are declared then.
          exposition ??= prometheusExposition(metrics.registry);
          const headers = { "content-type": exposition.contentType };
          return { status: 200, headers, body: await exposition.text() };
        },
      ],
    ]),
  );
}

/** --listen-addr for all, and --metrics-addr for HTTP alone. */
function addresses({ listen, metricsUrl }: ProxyFlags, secure: boolean): ListenAddress[] {
  const all: ListenAddress[] = [{ ...listen, secure, serves: "all" }];
  if (metricsUrl === "") return all;
  const url = URL.parse(metricsUrl);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new FlagRefusal(`cannot parse ${JSON.stringify(metricsUrl)}`);
  if (url.protocol === "https:" && !secure)
    throw new FlagRefusal(
      `cannot listen on TLS for ${url.host}: KeyFile and CertFile are not presented`,
    );
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return [...all, { host, port, secure: url.protocol === "https:", serves: "http" }];
}

function serverOptions(options: ProxyFlags, tls: TlsFileSource | undefined) {
  const { memoryBytes, openFiles } = machineLimits();
  const share = (part: number, most: number): number =>
    Math.min(most, Math.floor(memoryBytes * part));
  return {
    tls,
    maxRequestBytes: options.maxRequestBytes,
    maxConcurrentStreams: Math.min(options.maxConcurrentStreams, 2 ** 31 - 1),
    maxConnections: Math.max(16, Math.min(16_384, (openFiles || 4096) - 128)),
    grpcKeepAliveMinTimeMs: options.serverKeepAlive.minTimeMs,
    grpcKeepAliveIntervalMs: options.serverKeepAlive.intervalMs,
    grpcKeepAliveTimeoutMs: options.serverKeepAlive.timeoutMs,
    limits: {
      maxHeldTotalBytes: Math.max(share(1 / 8, 512 * MIB), 4 * options.maxRequestBytes),
      maxHeldBytes: Math.max(64 * MIB, 2 * options.maxRequestBytes),
      maxPendingTotalBytes: share(1 / 4, 1024 * MIB),
      maxUnsentTotalBytes: share(1 / 8, 512 * MIB),
    },
  };
}

/** Timeout of connecting to one member, before the next is tried. */
const DIAL_TIMEOUT_MS = 2000;

interface ChannelSettings {
  readonly tls: UpstreamTlsFlags;
  readonly limits: Partial<ClientLimits>;
  readonly clock: Clock;
}

/** Whether an endpoint is connected to by TLS: by its scheme, else by the flags. */
function isSecure(endpoint: string, tls: UpstreamTlsFlags): boolean {
  if (/^(?:https|unixs):/i.test(endpoint)) return true;
  return !/^(?:http|unix):/i.test(endpoint) && hasTlsFlags(tls);
}

/** The channel to an endpoint: "host:port", a URL, or "unix:PATH". */
function channelTo(endpoint: string, { tls, limits, clock }: ChannelSettings): Channel {
  const unix = /^unixs?:(?:\/\/)?(.+)$/.exec(endpoint);
  const address =
    unix !== null
      ? `unix:${unix[1]}`
      : endpoint.replace(/^https?:\/\//i, "").replace(/[/?#].*$/s, "");
  return new Channel(
    {
      endpoint,
      address,
      tls: isSecure(endpoint, tls) ? () => upstreamTls(tls, address) : undefined,
      dialTimeoutMs: DIAL_TIMEOUT_MS,
      limits,
      handshakeFailure,
    },
    clock,
  );
}

const LIST = { path: ClusterService.methods.MemberList.path, isRepeatable: true };
const CALL_TIMEOUT_MS = 5000;
/** More endpoints than a cluster has are not taken. */
const MAX_ENDPOINTS = 64;

/** Begins to follow the members. Returns the timer. */
export function followMembers(
  upstream: Upstream,
  options: { readonly intervalMs: number; readonly open: (endpoint: string) => MemberChannel },
  deps: { readonly clock: Clock; readonly logger: Logger },
): Timer {
  let isBusy = false;
  return deps.clock.every(options.intervalMs, () => {
    if (isBusy) return;
    isBusy = true;
    sync(upstream, options.open, deps.logger)
      .catch((error: Error) =>
        deps.logger.info("Auto sync endpoints failed.", { error: error.message }),
      )
      .finally(() => {
        isBusy = false;
      });
  });
}

async function sync(
  upstream: Upstream,
  open: (endpoint: string) => MemberChannel,
  logger: Logger,
): Promise<void> {
  const deadlineMs = upstream.clock.monotonicMs() + CALL_TIMEOUT_MS;
  const request = MemberListRequest.encode({ linearizable: true });
  const response = await upstream.call(LIST, request, { metadata: [], deadlineMs });
  const { members } = MemberListResponse.decode(response);
  // A member that has not started has no name yet, and a learner serves no reads.
  const endpoints = members
    .filter(({ name, isLearner }) => name !== "" && !isLearner)
    .flatMap(({ clientURLs }) => clientURLs)
    .slice(0, MAX_ENDPOINTS);
  const known = new Map(upstream.channels.map((channel) => [channel.endpoint, channel]));
  if (endpoints.length > 0 && endpoints.join() !== [...known.keys()].join())
    logger.info("the endpoints have changed with the members", { endpoints });
  upstream.replace(endpoints.map((endpoint) => known.get(endpoint) ?? open(endpoint)));
}
