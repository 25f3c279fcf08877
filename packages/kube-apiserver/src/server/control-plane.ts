/**
 * The composition root of the API server: storages, resources, and the server that serves them.
 *
 *     cluster -> ResourceStorages -> registry stores -> ResourceTable -> ApiServer -> exchanges
 *
 * It knows no sockets and no files; node/ opens those.
 */

import { type Clock, type Logger, type Random, sleep } from "@quorate/host";
import {
  type ClusterClient,
  type GroupVersionKind,
  kindSource,
  type ResourceSpec,
  rootOf,
  type ValueTransformer,
} from "@quorate/kube-storage";
import { policyResources } from "../admission/policy-kinds.ts";
import type { WebhookCaller } from "../admission/webhook-caller.ts";
import { ADMISSION_GROUP, webhookResources } from "../admission/webhook-kinds.ts";
import { Aggregator } from "../aggregation/aggregator.ts";
import { type PublishedTrust, publishTrust } from "../aggregation/authentication-config.ts";
import type { Backends } from "../aggregation/backends.ts";
import type { PlaceOptions } from "../aggregation/places.ts";
import { FieldManagers } from "../apply/field-manager.ts";
import type { Auditor } from "../audit/auditor.ts";
import type { FetchPage } from "../authn/oidc-tokens.ts";
import { isIdentityHeader } from "../authn/proxied-users.ts";
import type { PostReview } from "../authn/remote-reviews.ts";
import type { Sha256Hex } from "../authn/request-authenticator.ts";
import { Access, type AccessOptions } from "../authz/access.ts";
import { portRangeSpec } from "../builtin/node-ports.ts";
import { podEndpoints } from "../builtin/pod-endpoints.ts";
import { Chaos, type ChaosFault } from "../chaos/chaos.ts";
import type { ChaosSettings } from "../chaos/settings.ts";
import type { ServicePlace } from "../controllers/kubernetes-service.ts";
import { PolicyRuntime, type PolicyRuntimeOptions } from "../controllers/runtime.ts";
import { ServiceNetwork, type ServiceNetworkOptions } from "../controllers/service-network.ts";
import { RequestExpressions } from "../crd/cel/request-expressions.ts";
import { CustomResources } from "../crd/runtime.ts";
import type { Compressor } from "../handlers/body-sink.ts";
import { SharedFrames } from "../handlers/watch-frames.ts";
import type { SocketOpener } from "../handlers/watch-output.ts";
import type { LocalClient } from "../informers/local-client.ts";
import { OpenApiDocuments } from "../openapi/openapi-documents.ts";
import type { TypedResource } from "../typed/define-resource.ts";
import { ApiServer, type ApiServerOptions } from "./api-server.ts";
import type { HealthCheck } from "./health.ts";
import { openApiPages } from "./openapi-pages.ts";
import { type ClusterOverride, ResourceStorages } from "./resource-storages.ts";
import {
  builtinServed,
  builtinSpecs,
  ResourceTable,
  storedAsJson,
  typedServed,
} from "./resource-table.ts";
import type { Page } from "./routes.ts";

export interface ControlPlaneOptions extends ApiServerOptions {
  /** --etcd-prefix: "/registry". */
  readonly etcdPrefix: string;
  readonly watchCache: boolean;
  /** Lists and watches may be of shards (ShardedListAndWatch); absent: they may not. */
  readonly takesShards?: boolean;
  /** Write built-in kinds as JSON, not as protobuf; both are read. */
  readonly storesJson: boolean;
  /** Watches without a timeout end after this long, or up to twice as long. */
  readonly minWatchMs: number;
  /** --etcd-compaction-interval; 0: another server compacts. */
  readonly compactionIntervalMs: number;
  readonly eventTtlSeconds: number;
  /** Resources that the program adds (defineResource). */
  readonly resources: readonly TypedResource[];
  readonly access: AccessOptions;
  /** Faults for tests of controllers; absent: none. */
  readonly chaos?: ChaosSettings | undefined;
  readonly policy: PolicyRuntimeOptions;
  /** Of which services are given addresses and ports. */
  readonly serviceNetwork: ServiceNetworkOptions;
  /** Where services of other API servers are. */
  readonly places: PlaceOptions;
  /** What other API servers are told; absent: nothing. */
  readonly trust?: PublishedTrust | undefined;
  /** The document of /version. */
  readonly version: Readonly<Record<string, unknown>>;
}

export interface ControlPlaneDeps {
  readonly cluster: ClusterClient;
  /** Clusters of some resources. */
  readonly overrides?: readonly ClusterOverride[];
  readonly clock: Clock;
  /** Seeded from the system's randomness. */
  readonly random: Random;
  readonly logger: Logger;
  readonly newCompressor: () => Compressor;
  readonly sha256Hex?: Sha256Hex;
  /** Reads pages of the OpenID Connect provider. */
  readonly fetchPage?: FetchPage | undefined;
  /** Ask the webhooks that know tokens, and who may do what. */
  readonly postTokenReview?: PostReview | undefined;
  readonly postAccessReview?: PostReview | undefined;
  readonly webhooks: WebhookCaller;
  /** Calls other API servers. */
  readonly backends: Backends;
  transformerOf(spec: ResourceSpec): ValueTransformer;
  /** Opens WebSockets for watches. */
  readonly openSocket?: SocketOpener;
  /** Told of each fault of `chaos`. */
  readonly onFault?: ((fault: ChaosFault) => void) | undefined;
  /** Records requests; undefined for none. */
  readonly auditor?: Auditor | undefined;
  /** More checks of all health endpoints. */
  readonly healthChecks?: readonly HealthCheck[];
  /** More pages, such as /metrics; they may be added until the server listens. */
  readonly pages: Map<string, Page>;
}

export class ControlPlane {
  readonly server: ApiServer;
  readonly resources = new ResourceTable();
  readonly storages: ResourceStorages;
  readonly access: Access;
  readonly #definitions: CustomResources;
  readonly #policy: PolicyRuntime;
  readonly #services: ServiceNetwork;
  readonly #aggregator: Aggregator;
  readonly #trust: PublishedTrust | undefined;
  readonly #logger: Logger;
  readonly #chaos: Chaos | undefined;
  #isStopping = false;

  constructor(options: ControlPlaneOptions, deps: ControlPlaneDeps) {
    const { cluster, clock, random, logger, transformerOf } = deps;
    const { takesShards = false } = options;
    this.#logger = logger;
    this.#trust = options.trust;
    this.storages = new ResourceStorages(
      {
        root: rootOf(options.etcdPrefix),
        isCached: options.watchCache,
        takesShards,
        compactionIntervalMs: options.compactionIntervalMs,
      },
      {
        cluster,
        clock,
        logger,
        transformerOf,
        overrides: deps.overrides,
        random: random.fork("storage"),
      },
    );
    this.access = new Access(options.access, { ...deps, random: random.fork("access") });
    const expressions = new RequestExpressions();
    this.#policy = new PolicyRuntime(options.policy, {
      clock,
      logger,
      expressions,
      served: this.resources,
      random: random.fork("policy"),
      authorizer: this.access.authorizer,
      webhooks: deps.webhooks,
    });
    const ranges = portRangeSpec();
    this.#services = new ServiceNetwork(options.serviceNetwork, {
      clock,
      client: this.#policy.client,
      served: this.resources,
      portStorage: this.storages.storageFor(options.storesJson ? storedAsJson(ranges) : ranges),
      random: random.fork("services"),
      logger: logger.child("apiserver/services"),
    });
    this.#aggregator = new Aggregator(options.places, {
      clock,
      backends: deps.backends,
      isIdentityHeader: options.access.proxies && isIdentityHeader(options.access.proxies),
      client: this.#policy.client,
      served: this.resources,
      random: random.fork("aggregator"),
      logger: logger.child("apiserver/aggregator"),
    });
    const documents = new OpenApiDocuments(this.resources, this.#aggregator, clock);
    const openApi = openApiPages(documents, deps);
    for (const [path, page] of openApi) deps.pages.set(path, page);
    this.#chaos =
      options.chaos &&
      new Chaos(options.chaos, {
        clock,
        logger: logger.child("chaos"),
        rewrite: (resource, namespace, name) => this.storages.rewrite(resource, namespace, name),
        ...(deps.onFault && { onFault: deps.onFault }),
      });
    this.server = new ApiServer(options, {
      clock,
      logger,
      random: random.fork("server"),
      resources: this.resources,
      newCompressor: deps.newCompressor,
      auditor: deps.auditor,
      remote: this.#aggregator,
      openSocket: deps.openSocket,
      authenticator: this.access.authenticator,
      authorizer: this.access.authorizer,
      admission: this.#policy.admission,
      fieldManagers: new FieldManagers(this.resources, clock),
      takesShards,
      minWatchMs: options.minWatchMs,
      frames: new SharedFrames(),
      chaos: this.#chaos,
      version: options.version,
      healthChecks: this.#healthChecks(deps.healthChecks ?? [], deps.overrides?.length ?? 0),
      pages: deps.pages,
    });
    const registry = { clock, random: random.fork("registry"), collectsGarbage: true };
    const sourceOf = ({ group, version, kind }: GroupVersionKind) =>
      kindSource(group, version, kind);
    const declared = [
      ...builtinSpecs(options.eventTtlSeconds, this.#services.hooks),
      ...this.access.resources(sourceOf),
      ...webhookResources(sourceOf, expressions),
      ...policyResources(sourceOf, {
        expressions,
        served: this.resources,
        authorizer: this.access.authorizer,
        policyNamed: (resource, name) =>
          this.#policy.client.get({ group: ADMISSION_GROUP, version: "v1", resource }, "", name),
      }),
    ];
    const specs = options.storesJson ? declared.map(storedAsJson) : declared;
    const served = specs.flatMap((spec) =>
      builtinServed(spec, this.storages.storageFor(spec), registry),
    );
    this.#definitions = new CustomResources(
      { establishDelayMs: 0 },
      {
        clock,
        logger,
        webhooks: deps.webhooks,
        storages: this.storages,
        table: this.resources,
        random: random.fork("definitions"),
        isBuiltIn: (group, resource) =>
          specs.some(({ kind, resource: name }) => kind.group === group && name === resource),
        collectsGarbage: registry.collectsGarbage,
      },
    );
    for (const { spec, source } of options.resources) {
      const parts = { ...registry, storage: this.storages.storageFor(spec) };
      this.resources.set(`program ${spec.storagePrefix}`, typedServed(spec, source, parts));
    }
    const endpoints = [
      ...this.access.endpoints(sourceOf),
      ...podEndpoints(sourceOf, this.#policy.client),
      ...this.#definitions.served,
    ];
    this.resources.set("built-in", [...served, ...endpoints]);
  }

  /**
   * Starts what follows the stored objects. Resolves when requests can be decided on.
   * @param place of this server, for the Service "kubernetes"; absent: there is none
   */
  async start(place?: ServicePlace): Promise<void> {
    this.#definitions.start();
    await Promise.all([this.access.start(this.resources), this.#definitions.ready()]);
    const started = this.#policy.start().then(() => this.#services.start(place));
    await Promise.all([started, this.#aggregator.start()]);
    if (this.#trust !== undefined) await publishTrust(this.#policy.client, this.#trust);
  }

  /** Requests of the server itself. */
  get client(): LocalClient {
    return this.#policy.client;
  }

  /** Resolves once every resource can be served. Rejects after `timeoutMs`. */
  async ready(clock: Clock, timeoutMs: number): Promise<void> {
    const endMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      const { unready } = this.storages;
      if (unready.length === 0) return;
      if (clock.monotonicMs() > endMs)
        throw new Error(`the store is not ready: ${unready.join("; ")}`);
      await sleep(clock, 5);
    }
  }

  /** /readyz fails from now on, so that clients go elsewhere. */
  beginStop(): void {
    this.#isStopping = true;
  }

  /** Ends all watches. */
  endWatches(): void {
    this.server.watches.endAll();
    this.#aggregator.endAll();
  }

  async close(): Promise<void> {
    this.#chaos?.stop();
    this.#aggregator.stop();
    await this.#services.stop();
    await this.#policy.stop();
    this.access.stop();
    await this.#definitions.stop();
    await this.storages.close();
    this.#logger.info("the storages are closed");
  }

  #healthChecks(
    more: readonly HealthCheck[],
    overrides: number,
  ): Record<"healthz" | "livez" | "readyz", readonly HealthCheck[]> {
    const passing = (name: string): HealthCheck => ({ name, check: () => undefined });
    const storage = (name: string, cluster: number): HealthCheck => ({
      name,
      check: () => {
        const unready = this.storages.unreadyIn(cluster);
        return unready.length === 0 ? undefined : unready.join("; ");
      },
    });
    const others = Array.from({ length: overrides }, (_, i) => i);
    const live = [
      passing("ping"),
      passing("log"),
      storage("etcd", 0),
      ...others.map((i) => storage(`etcd-override-${i}`, i + 1)),
      ...more,
    ];
    const ready = [
      storage("etcd-readiness", 0),
      ...others.map((i) => storage(`etcd-override-readiness-${i}`, i + 1)),
    ];
    const policy: HealthCheck = {
      name: "poststarthook/rbac/bootstrap-roles",
      check: () => (this.#policy.isReady && this.#services.isReady ? undefined : "not finished"),
    };
    const shutdown: HealthCheck = {
      name: "shutdown",
      check: () => (this.#isStopping ? "process is shutting down" : undefined),
    };
    return {
      healthz: live,
      livez: live,
      readyz: [...live, ...ready, policy, shutdown],
    };
  }
}
