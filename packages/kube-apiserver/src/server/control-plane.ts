/**
 * The composition root of the API server: storages, resources, and the server that serves them.
 *
 *     cluster -> ResourceStorages -> registry stores -> ResourceTable -> ApiServer -> exchanges
 *
 * It knows no sockets and no files; node/ opens those.
 */
import type { Clock, Logger, Random } from "@quorate/host";
import type {
  ClusterClient,
  GroupVersionKind,
  ResourceSpec,
  ValueTransformer,
} from "@quorate/kube-storage";
import { kindSource, parseFieldSelector, parseLabelSelector, rootOf } from "@quorate/kube-storage";
import type { WebhookCaller } from "../admission/webhook-caller.ts";
import { webhookResources } from "../admission/webhook-kinds.ts";
import { applyPatch } from "../apply/apply-patch.ts";
import type { Auditor } from "../audit/auditor.ts";
import type { Sha256Hex } from "../authn/token-cache.ts";
import { Access, type AccessOptions } from "../authz/access.ts";
import { PolicyRuntime, type PolicyRuntimeOptions } from "../controllers/runtime.ts";
import { MatchConditionCompiler } from "../crd/cel/match-conditions.ts";
import { CustomResources } from "../crd/runtime.ts";
import type { Compressor } from "../handlers/body-sink.ts";
import { SharedFrames } from "../handlers/watch-frames.ts";
import type { SocketOpener } from "../handlers/watch-output.ts";
import { OpenApiDocuments } from "../openapi/openapi-documents.ts";
import type { TypedResource } from "../typed/define-resource.ts";
import { ApiServer, type ApiServerOptions } from "./api-server.ts";
import { builtinServed, builtinSpecs, storedAsJson, typedServed } from "./builtin-resources.ts";
import { FieldManagers } from "./field-managers.ts";
import type { HealthCheck } from "./health.ts";
import { openApiPages } from "./openapi-pages.ts";
import { ResourceStorages } from "./resource-storages.ts";
import { ResourceTable } from "./resource-table.ts";
import type { Page } from "./routes.ts";
import { storageVersionHash } from "./storage-version-hash.ts";

export interface ControlPlaneOptions extends ApiServerOptions {
  /** --etcd-prefix: "/registry". */
  readonly etcdPrefix: string;
  readonly watchCache: boolean;
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
  readonly policy: PolicyRuntimeOptions;
  /** The document of /version. */
  readonly version: Readonly<Record<string, unknown>>;
}

export interface ControlPlaneDeps {
  readonly cluster: ClusterClient;
  readonly clock: Clock;
  /** Seeded from the system's randomness. */
  readonly random: Random;
  readonly logger: Logger;
  readonly newCompressor: () => Compressor;
  readonly sha256Hex?: Sha256Hex;
  readonly webhooks: WebhookCaller;
  transformerOf(spec: ResourceSpec): ValueTransformer;
  /** Opens WebSockets for watches. */
  readonly openSocket?: SocketOpener;
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
  readonly #logger: Logger;
  #isStopping = false;

  constructor(options: ControlPlaneOptions, deps: ControlPlaneDeps) {
    const { cluster, clock, random, logger, transformerOf } = deps;
    this.#logger = logger;
    this.storages = new ResourceStorages(
      {
        root: rootOf(options.etcdPrefix),
        isCached: options.watchCache,
        compactionIntervalMs: options.compactionIntervalMs,
      },
      { cluster, clock, random: random.fork("storage"), logger, transformerOf },
    );
    const { sha256Hex } = deps;
    const forAccess = { clock, logger, random: random.fork("access"), sha256Hex };
    this.access = new Access(options.access, forAccess);
    const conditions = new MatchConditionCompiler();
    this.#policy = new PolicyRuntime(options.policy, {
      clock,
      logger,
      applyPatch,
      conditions,
      served: this.resources,
      random: random.fork("policy"),
      authorizer: this.access.authorizer,
      webhooks: deps.webhooks,
    });
    const openApi = openApiPages(new OpenApiDocuments(this.resources, clock), deps);
    for (const [path, page] of openApi) deps.pages.set(path, page);
    const fieldManagers = new FieldManagers(this.resources, clock);
    this.server = new ApiServer(options, {
      clock,
      logger,
      applyPatch,
      random: random.fork("server"),
      resources: this.resources,
      newCompressor: deps.newCompressor,
      auditor: deps.auditor,
      openSocket: deps.openSocket,
      authenticator: this.access.authenticator,
      authorizer: this.access.authorizer,
      admission: this.#policy.admission,
      selectors: { label: parseLabelSelector, field: parseFieldSelector },
      fieldManagerOf: (resource) => fieldManagers.of(resource),
      minWatchMs: options.minWatchMs,
      frames: new SharedFrames(),
      version: options.version,
      healthChecks: this.#healthChecks(deps.healthChecks ?? []),
      pages: deps.pages,
    });
    const registry = { clock, random: random.fork("registry"), collectsGarbage: true };
    const sourceOf = ({ group, version, kind }: GroupVersionKind) =>
      kindSource(group, version, kind);
    const declared = [
      ...builtinSpecs(options.eventTtlSeconds),
      ...this.access.resources(sourceOf),
      ...webhookResources(sourceOf, conditions),
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
        storageVersionHash,
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
    const endpoints = [...this.access.endpoints(sourceOf), ...this.#definitions.served];
    this.resources.set("built-in", [...served, ...endpoints]);
  }

  /** Starts what follows the stored objects. Resolves when requests can be decided on. */
  async start(): Promise<void> {
    this.#definitions.start();
    await Promise.all([this.access.start(this.resources), this.#definitions.ready()]);
    await this.#policy.start();
  }

  /** Resolves once every resource can be served. Rejects after `timeoutMs`. */
  async ready(clock: Clock, timeoutMs: number): Promise<void> {
    const endMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      const { unready } = this.storages;
      if (unready.length === 0) return;
      if (clock.monotonicMs() > endMs)
        throw new Error(`the store is not ready: ${unready.join("; ")}`);
      await new Promise<void>((resolve) => clock.after(5, resolve));
    }
  }

  /** /readyz fails from now on, so that clients go elsewhere. */
  beginStop(): void {
    this.#isStopping = true;
  }

  /** Ends all watches. */
  endWatches(): void {
    this.server.watches.endAll();
  }

  async close(): Promise<void> {
    await this.#policy.stop();
    this.access.stop();
    await this.#definitions.stop();
    await this.storages.close();
    this.#logger.info("the storages are closed");
  }

  #healthChecks(
    more: readonly HealthCheck[],
  ): Record<"healthz" | "livez" | "readyz", readonly HealthCheck[]> {
    const passing = (name: string): HealthCheck => ({ name, check: () => undefined });
    const storage = (name: string): HealthCheck => ({
      name,
      check: () => {
        const { unready } = this.storages;
        return unready.length === 0 ? undefined : unready.join("; ");
      },
    });
    const live = [passing("ping"), passing("log"), storage("etcd"), ...more];
    const policy: HealthCheck = {
      name: "poststarthook/rbac/bootstrap-roles",
      check: () => (this.#policy.isReady ? undefined : "not finished"),
    };
    const shutdown: HealthCheck = {
      name: "shutdown",
      check: () => (this.#isStopping ? "process is shutting down" : undefined),
    };
    return {
      healthz: live,
      livez: live,
      readyz: [...live, storage("etcd-readiness"), policy, shutdown],
    };
  }
}
