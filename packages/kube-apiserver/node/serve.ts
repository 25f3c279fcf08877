/**
 * An API server among real sockets and files: its store, its certificates, its port.
 *
 *     open: member or cluster, certificates, encryption -> ControlPlane -> port
 *     stop: readyz fails -> delay -> watches end -> port closes -> control plane -> store
 */
import { hash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { startMember } from "@quorate/embed/node";
import { type Logger, silentLogger } from "@quorate/host";
import {
  followTlsFiles,
  nodeClock,
  nodeRandom,
  type TlsFileSource,
  type TlsOptions,
} from "@quorate/host/node";
import { identityTransformer, type UserInfo } from "@quorate/kube-storage";
import { MetricRegistry } from "@quorate/metrics";
import { defined } from "@quorate/proto";
import { EngineServer } from "@quorate/rpc/node";
import type { PublishedTrust } from "../src/aggregation/authentication-config.ts";
import { parseTokenFile } from "../src/authn/token-file.ts";
import { MAX_BODY_BYTES } from "../src/handlers/call.ts";
import { timedCluster } from "../src/server/api-metrics.ts";
import { ControlPlane, type ControlPlaneOptions } from "../src/server/control-plane.ts";
import { openIdPages } from "../src/server/openid-pages.ts";
import type { ClusterOverride } from "../src/server/resource-storages.ts";
import { type AuditLog, openAuditLog } from "./audit-log.ts";
import { HttpsBackends } from "./backends.ts";
import {
  clientCertificate,
  FRONT_PROXY_NAME,
  type OwnCertificates,
  ownCertificates,
  type Pair,
} from "./certificates.ts";
import { LibraryCluster } from "./cluster.ts";
import type { Encryption } from "./encryption/encryption.ts";
import { gzipCompressor } from "./gzip.ts";
import { kubeconfigText, writeKubeconfig } from "./kubeconfig.ts";
import { metricsPages } from "./metrics-page.ts";
import { oidcPages } from "./oidc-pages.ts";
import { reviewPoster } from "./review-poster.ts";
import type { EtcdOptions, ServeOptions } from "./serve-options.ts";
import { serviceAccountKeys } from "./service-account-keys.ts";
import { versionDocument } from "./version.ts";
import { watchSockets } from "./watch-sockets.ts";
import { HttpsWebhookCaller } from "./webhook-caller.ts";

/** How long requests in flight may take when the server stops. */
const GRACE_MS = 5000;
/** How long the store may take to be ready. */
const READY_TIMEOUT_MS = 60_000;
/** Names by which clients in a cluster know the server. */
const SERVICE_NAMES = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
/** A connection may hold so many of the largest requests. */
const HELD_BODIES = 4;

export interface ServeDeps {
  readonly logger: Logger;
  /** The embedded member has ended by itself; the server cannot go on. */
  onEnd(error: unknown): void;
}

/** A server that serves. */
export interface ServingApi {
  readonly url: string;
  /** PEM of the authority that clients verify the server with. */
  readonly caPem: string;
  /** Of a client in the group system:masters, and the file that has it. */
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
  readonly plane: ControlPlane;
  /** A client of the cluster that holds the objects. */
  readonly store: Client;
  /** The certificate in that kubeconfig. */
  readonly admin: Pair;
  /** A kubeconfig with a new client certificate: its CN is the user, its O's are the groups. */
  kubeconfigFor(user: string, groups: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

/** What is open, in the order in which it was opened. */
class Opened {
  readonly #tasks: (() => void | Promise<void>)[] = [];

  add(close: () => void | Promise<void>): void {
    this.#tasks.unshift(close);
  }

  async close(): Promise<void> {
    for (const task of this.#tasks.splice(0)) await task();
  }
}

/** Starts a server; resolves when it is ready. Rejects, with everything closed, if it cannot. */
export async function serveApi(options: ServeOptions, deps: ServeDeps): Promise<ServingApi> {
  const opened = new Opened();
  try {
    return await open(options, deps, opened);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function open(options: ServeOptions, deps: ServeDeps, opened: Opened): Promise<ServingApi> {
  const { dataDir, bindAddress } = options;
  const own = isAny(bindAddress) ? [] : [bindAddress];
  const hosts = ["127.0.0.1", "localhost", "::1", ...own, ...SERVICE_NAMES, ...options.hosts];
  const [client, certificates, encryption, audit] = await allStarted([
    storeClient(options, deps, opened),
    ownCertificates(join(dataDir, "pki"), hosts, nodeClock.wallMs()),
    encryptionOf(options, deps.logger),
    auditOf(options, deps.logger, opened),
  ]);
  opened.add(() => encryption.close());
  const { logger } = deps;
  const storageMetrics = new MetricRegistry();
  const cluster = timedCluster(clusterOf(client, options), storageMetrics, nodeClock);
  const overrides = overridesOf(options, opened);
  const pages = new Map();
  const settings = planeOptions(options, certificates, logger);
  const backends = new HttpsBackends(proxyClientOf(options, certificates));
  opened.add(() => backends.close());
  const webhooks = new HttpsWebhookCaller({ services: options.webhookServices });
  opened.add(() => webhooks.close());
  const reviewer = (of: { readonly configFile: string } | undefined) =>
    of && reviewPoster(of.configFile, webhooks);
  const [postTokenReview, postAccessReview] = await Promise.all([
    reviewer(options.webhookTokens),
    reviewer(options.webhookDecisions),
  ]);
  const plane = new ControlPlane(settings, {
    cluster,
    overrides,
    clock: nodeClock,
    random: nodeRandom(),
    logger,
    pages,
    backends,
    newCompressor: gzipCompressor,
    sha256Hex: (text) => hash("sha256", text),
    fetchPage: options.oidc && oidcPages(pemOf(options.oidc.caFile)),
    openSocket: watchSockets(nodeClock),
    auditor: audit?.auditor,
    onFault: options.onFault,
    healthChecks: [{ name: "kms-providers", check: () => encryption.problem() }],
    webhooks,
    postTokenReview,
    postAccessReview,
    transformerOf: ({ kind, resource }) =>
      encryption.transformerFor({ group: kind.group, resource }),
  });
  opened.add(() => plane.close());
  const engine = await engineOf(options, certificates, plane, logger, opened);
  const counters = () => engine.counters();
  const onClose = (task: () => void) => opened.add(task);
  const counted = [storageMetrics, ...(audit === undefined ? [] : [audit.metrics])];
  for (const [path, page] of metricsPages(plane, counted, counters, onClose)) pages.set(path, page);
  await plane.ready(nodeClock, READY_TIMEOUT_MS);
  const [bound] = await engine.listen();
  const port = defined(bound?.port, "the port");
  opened.add(() => engine.close(GRACE_MS));
  const address = isAny(bindAddress) ? "127.0.0.1" : bindAddress;
  await plane.start({
    address: options.advertiseAddress || address,
    port,
  });
  const url = `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
  const { issuers, keys } = settings.access.serviceAccounts;
  for (const [path, page] of openIdPages(issuers[0] ?? "", url, keys)) pages.set(path, page);
  const kubeconfigFor = async (user: string, groups: readonly string[]): Promise<string> => {
    const pair = await clientCertificate(certificates.ca, user, groups, nodeClock.wallMs());
    return kubeconfigText({ url, caPem: caOf(options, certificates), user: pair });
  };
  logger.info("ready to serve client requests", { url });
  return {
    ...written(options, certificates, url),
    url,
    plane,
    store: client,
    kubeconfigFor,
    admin: certificates.admin,
    stop: stopOf(options, plane, engine, opened),
  };
}

/**
 * As Promise.all, but rejects only when none is running any more: what a slower one has opened is
 * then known, and closed.
 */
async function allStarted<const T extends readonly Promise<unknown>[]>(
  tasks: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(tasks);
  return Promise.all(tasks);
}

function isAny(address: string): boolean {
  return address === "0.0.0.0" || address === "::" || address === "";
}

function stopOf(
  { shutdownDelayMs }: ServeOptions,
  plane: ControlPlane,
  engine: EngineServer,
  opened: Opened,
): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    plane.beginStop();
    // Load balancers notice that /readyz fails, and send no more.
    if (shutdownDelayMs > 0)
      await new Promise<void>((resolve) => nodeClock.after(shutdownDelayMs, resolve));
    plane.endWatches();
    await engine.close(GRACE_MS);
    await opened.close();
  };
  return () => (stopping ??= stop());
}

/** What clients verify the server with: a given certificate stands for its authority. */
function caOf({ tls }: ServeOptions, { ca }: OwnCertificates): string {
  return tls === undefined ? ca.certPem : readFileSync(tls.certFile, "utf8");
}

/** What other API servers are shown. */
function proxyClientOf({ proxyClient }: ServeOptions, { frontProxy }: OwnCertificates): Pair {
  if (proxyClient === undefined) return frontProxy;
  const { certFile, keyFile } = proxyClient;
  return { certPem: readFileSync(certFile, "utf8"), keyPem: readFileSync(keyFile, "utf8") };
}

/** What they are told of it. */
function trustOf(options: ServeOptions, { ca, frontProxyCa }: OwnCertificates): PublishedTrust {
  const { clientCaFile, proxyClient, requestHeaderCaFile, proxies } = options;
  const read = (path: string): string => (path === "" ? "" : readFileSync(path, "utf8"));
  const isOwn = proxyClient === undefined && requestHeaderCaFile === "";
  return {
    clientCaPem: read(clientCaFile) || ca.certPem,
    requestHeaderCaPem: isOwn ? frontProxyCa.certPem : read(requestHeaderCaFile),
    proxies: isOwn ? { ...proxies, allowedNames: [FRONT_PROXY_NAME] } : proxies,
  };
}

/** The admin's kubeconfig, written to its file. */
function written(options: ServeOptions, certificates: OwnCertificates, url: string) {
  const caPem = caOf(options, certificates);
  const kubeconfig = kubeconfigText({ url, caPem, user: certificates.admin });
  const kubeconfigPath = options.kubeconfigPath || join(options.dataDir, "admin.kubeconfig");
  writeKubeconfig(kubeconfigPath, kubeconfig);
  return { caPem, kubeconfig, kubeconfigPath };
}

/** A client of the given cluster, or of a member that is started for it. */
async function storeClient(
  { dataDir, etcd }: ServeOptions,
  { logger, onEnd }: ServeDeps,
  opened: Opened,
): Promise<Client> {
  if (etcd !== undefined) {
    const client = connect({ endpoints: etcd.servers, tls: etcdTls(etcd) });
    opened.add(() => client.close());
    return client;
  }
  const member = await startMember({
    dataDir: join(dataDir, "etcd"),
    isPrivate: true,
    logger: logger === silentLogger ? logger : logger.child("etcd"),
  });
  let isStopping = false;
  const ended = (error?: unknown): void => {
    if (!isStopping) onEnd(error);
  };
  member.ended.then(() => ended(), ended);
  opened.add(() => {
    isStopping = true;
    return member.stop();
  });
  await member.ready;
  const client = connect({ endpoints: member.endpoints });
  opened.add(() => client.close());
  return client;
}

function clusterOf(client: Client, { featureGates }: ServeOptions): LibraryCluster {
  return new LibraryCluster(client, featureGates.EtcdRangeStream);
}

/** One client for each set of servers. */
function overridesOf(options: ServeOptions, opened: Opened): ClusterOverride[] {
  const { etcd } = options;
  if (etcd === undefined) return [];
  const bySet = Map.groupBy(etcd.overrides ?? [], ({ servers }) => [...servers].sort().join(";"));
  return [...bySet.values()].map((holds) => {
    const endpoints = holds[0]?.servers ?? [];
    const client = connect({ endpoints, tls: etcdTls(etcd) });
    opened.add(() => client.close());
    return { cluster: clusterOf(client, options), holds };
  });
}

function etcdTls({ caFile, certFile, keyFile }: EtcdOptions) {
  if (caFile === "" && certFile === "") return undefined;
  const read = (path: string) => (path === "" ? undefined : readFileSync(path, "utf8"));
  return { ca: read(caFile), cert: read(certFile), key: read(keyFile), plainByDefault: true };
}

const NO_ENCRYPTION: Encryption = {
  transformerFor: () => identityTransformer,
  problem: () => undefined,
  close: async () => {},
};

async function encryptionOf(options: ServeOptions, logger: Logger): Promise<Encryption> {
  const { encryptionConfigFile: path, encryptionReload } = options;
  if (path === "") return NO_ENCRYPTION;
  const { openEncryption } = await import("./encryption/encryption.ts");
  return openEncryption(path, encryptionReload, { clock: nodeClock, logger });
}

async function auditOf(
  { audit }: ServeOptions,
  logger: Logger,
  opened: Opened,
): Promise<AuditLog | undefined> {
  const log = await openAuditLog(audit, { clock: nodeClock, logger });
  if (log !== undefined) opened.add(() => log.close());
  return log;
}

function planeOptions(
  options: ServeOptions,
  certificates: OwnCertificates,
  logger: Logger,
): ControlPlaneOptions {
  const { serviceAccounts, tokenAuthFile } = options;
  const { issuers, audiences, maxExpirationSeconds, signingKeyFile, keyFiles } = serviceAccounts;
  const file = (path: string) => ({ path, pem: readFileSync(path, "utf8") });
  const signing =
    signingKeyFile === ""
      ? { path: "service-account.key", pem: certificates.serviceAccountKeyPem }
      : file(signingKeyFile);
  return {
    etcdPrefix: options.etcdPrefix,
    watchCache: options.watchCache,
    takesShards: options.featureGates.ShardedListAndWatch,
    compactionIntervalMs: options.compactionIntervalMs,
    resources: options.resources,
    storesJson: options.storageMediaType === "application/json",
    minWatchMs: options.minRequestTimeoutMs,
    requestTimeoutMs: options.requestTimeoutMs,
    maxInFlight: options.maxInFlight,
    eventTtlSeconds: options.eventTtlSeconds,
    chaos: options.chaos,
    version: versionDocument(),
    places: { usesEndpoints: options.aggregatorRouting, services: options.webhookServices },
    trust: trustOf(options, certificates),
    serviceNetwork: { ranges: options.serviceRanges, nodePorts: options.nodePorts },
    policy: {
      plugins: options.plugins,
      rootCaPem: caOf(options, certificates),
      controllers: new Set(options.controllers),
      identity: `apiserver-${randomUUID()}`,
      createsDefaultRoles: options.authorizationModes.includes("RBAC"),
      createsDefaultObjects: true,
    },
    access: {
      modes: options.authorizationModes,
      allowAnonymous: options.anonymousAuth,
      clientCertificates: true,
      staticTokens: tokensOf(tokenAuthFile, logger),
      oidc: options.oidc,
      proxies: options.requestHeaderCaFile === "" ? undefined : options.proxies,
      webhookTokens: options.webhookTokens,
      webhookDecisions: options.webhookDecisions,
      serviceAccounts: {
        issuers,
        maxExpirationSeconds,
        audiences: audiences.length > 0 ? audiences : issuers,
        keys: serviceAccountKeys(signing, keyFiles.map(file)),
      },
    },
  };
}

function pemOf(path: string): string | undefined {
  return path === "" ? undefined : readFileSync(path, "utf8");
}

function tokensOf(path: string, logger: Logger): ReadonlyMap<string, UserInfo> | undefined {
  if (path === "") return undefined;
  return parseTokenFile(readFileSync(path, "utf8"), path, (message) => logger.warn(message));
}

/** The port; it has still to listen. */
async function engineOf(
  options: ServeOptions,
  { ca, server }: OwnCertificates,
  plane: ControlPlane,
  logger: Logger,
  opened: Opened,
): Promise<EngineServer> {
  const { bindAddress, port, tls, clientCaFile } = options;
  const trustedCaPem = clientCaFile === "" ? ca.certPem : readFileSync(clientCaFile, "utf8");
  const proxyCaPem = pemOf(options.requestHeaderCaFile);
  const optional = { clientCertOptional: true, proxyCaPem };
  let source: TlsOptions | TlsFileSource = { ...server, trustedCaPem, ...optional };
  if (tls !== undefined) {
    const trustedCaFile = clientCaFile || join(options.dataDir, "pki", "ca.crt");
    const files = { ...tls, ...optional, trustedCaFile };
    const following = await followTlsFiles(files, { clock: nodeClock, logger });
    opened.add(() => following.close());
    source = following;
  }
  return new EngineServer(
    {
      tls: source,
      maxRequestBytes: MAX_BODY_BYTES,
      limits: { maxHeldBytes: HELD_BODIES * MAX_BODY_BYTES },
      // Many watches share a connection.
      maxConcurrentStreams: 1000,
      listen: [{ host: bindAddress, port, secure: true, serves: "all" }],
    },
    {
      services: { unary: new Map(), stream: new Map() },
      http: plane.server.handle,
      clock: nodeClock,
      logger: logger.child("rpc"),
    },
  );
}
