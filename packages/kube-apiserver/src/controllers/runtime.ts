/**
 * Admission and controllers of a server, put together.
 *
 *     const runtime = new PolicyRuntime(options, deps);
 *     handlers use runtime.admission
 *     await runtime.start();       default namespaces and roles exist, webhooks are known
 *     await runtime.stop();
 */
import type { Clock, Logger, Random, Timer } from "@quorate/host";
import {
  Canceller,
  isDns1123Subdomain,
  type KubeObject,
  type Lister,
  type ServedResources,
  textOf,
  type Watcher,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { AdmissionChain, type AdmissionPlugin, type FindNamed } from "../admission/chain.ts";
import { limitRanger } from "../admission/limit-ranger.ts";
import { mutatingPolicies } from "../admission/mutating-policies.ts";
import { KnownNamespaces, namespaceLifecycle } from "../admission/namespace-lifecycle.ts";
import { nodeTaints } from "../admission/node-taints.ts";
import { ownerReferencesPermission } from "../admission/owner-references.ts";
import type { PluginName } from "../admission/plugin-names.ts";
import { PolicyList } from "../admission/policy-config.ts";
import { POLICY_RESOURCES } from "../admission/policy-kinds.ts";
import { DefaultPriorityClasses, podPriority } from "../admission/priority.ts";
import { runtimeClass } from "../admission/runtime-class.ts";
import { serviceAccount } from "../admission/service-account.ts";
import { signerPermissions } from "../admission/signer-permissions.ts";
import { subjectRestriction } from "../admission/subject-restriction.ts";
import { validatingPolicies } from "../admission/validating-policies.ts";
import type { WebhookCaller } from "../admission/webhook-caller.ts";
import { WebhookList } from "../admission/webhook-config.ts";
import { ADMISSION_GROUP, WEBHOOK_RESOURCES } from "../admission/webhook-kinds.ts";
import { mutatingWebhooks, validatingWebhooks } from "../admission/webhooks.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import { reconcileDefaultPolicy } from "../authz/bootstrap.ts";
import type { RequestExpressions } from "../crd/cel/request-expressions.ts";
import { Informer, type InformerHandler, STOPPED } from "../informers/informer.ts";
import { isAlreadyExists, LocalClient, type ResourceRef } from "../informers/local-client.ts";
import { systemContext } from "../informers/system-context.ts";
import { QUOTA_STATUS, QUOTAS } from "../quota/quotas.ts";
import { type QuotaDeps, resourceQuota } from "../quota/resource-quota.ts";
import { CONTROLLERS, type ControllerName, Controllers } from "./controllers.ts";
import { ensureDefaultObjects } from "./default-objects.ts";
import { LeaderElection } from "./leader-election.ts";

export const DEFAULT_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease", "default"];
/** A deleted kube-node-lease comes back, as in Kubernetes; so do the other default objects. */
const DEFAULTS_PERIOD_MS = 60_000;
const LIMIT_RANGES: ResourceRef = { group: "", version: "v1", resource: "limitranges" };
const PRIORITIES: ResourceRef = {
  group: "scheduling.k8s.io",
  version: "v1",
  resource: "priorityclasses",
};
const RUNTIMES: ResourceRef = { group: "node.k8s.io", version: "v1", resource: "runtimeclasses" };
const ACCOUNTS: ResourceRef = { group: "", version: "v1", resource: "serviceaccounts" };
const NAMESPACES: ResourceRef = { group: "", version: "v1", resource: "namespaces" };

export interface PolicyRuntimeOptions {
  /** Those that are on besides the ones that always are. */
  readonly plugins: ReadonlySet<PluginName>;
  /** The CA of the server's certificate, for kube-root-ca.crt; "" for none. */
  readonly rootCaPem: string;
  /** The controllers that run on the server that leads. Absent: all. */
  readonly controllers?: ReadonlySet<ControllerName>;
  /** Of this server among those of the cluster. */
  readonly identity: string;
  /** Creates and repairs the default roles when the server starts. */
  readonly createsDefaultRoles: boolean;
  /** The same for FlowSchemas, PriorityLevelConfigurations and PriorityClasses. */
  readonly createsDefaultObjects?: boolean;
}

export interface PolicyRuntimeDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly served: ServedResources;
  readonly authorizer: Authorizer;
  readonly webhooks: WebhookCaller;
  /** Of policies and matchConditions, in CEL. */
  readonly expressions: RequestExpressions;
}

export class PolicyRuntime {
  readonly admission: AdmissionChain;
  /** Requests of the server itself. */
  readonly client: LocalClient;
  readonly #options: PolicyRuntimeOptions;
  readonly #deps: PolicyRuntimeDependencies;
  readonly #stop = new Canceller();
  readonly #namespaces: KnownNamespaces;
  readonly #mutating: WebhookList;
  readonly #validating: WebhookList;
  readonly #mutatingPolicies: PolicyList;
  readonly #validatingPolicies: PolicyList;
  readonly #election: LeaderElection;
  /** How many quotas each namespace has; those with none are absent. */
  readonly #quotas = new Map<string, number>();
  readonly #defaultPriorities = new DefaultPriorityClasses();
  /** Of what pods name. */
  readonly #named = new Map<ResourceRef, Informer>();
  #informers: readonly Informer[] = [];
  #controllers: Controllers | undefined;
  #timer: Timer | undefined;
  #isReady = false;

  constructor(options: PolicyRuntimeOptions, deps: PolicyRuntimeDependencies) {
    this.#options = options;
    this.#deps = deps;
    this.#mutating = new WebhookList(deps.expressions);
    this.#validating = new WebhookList(deps.expressions);
    this.#mutatingPolicies = new PolicyList(deps.expressions);
    this.#validatingPolicies = new PolicyList(deps.expressions);
    this.#namespaces = new KnownNamespaces(deps.served, () => systemContext("", this.#stop));
    this.admission = this.#chain();
    this.client = new LocalClient(deps.served, this.admission, this.#stop);
    const { clock, random, logger } = deps;
    this.#election = new LeaderElection(
      options.identity,
      { started: () => this.#startControllers(), stopped: () => this.#stopControllers() },
      { client: this.client, clock, random: random.fork("leader election"), logger },
    );
  }

  /** Whether the default namespaces and roles exist and all webhooks are known. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether this server runs the controllers. */
  get isLeader(): boolean {
    return this.#election.isLeader;
  }

  /** Resolves when requests can be served. Rejects with ApiError where the store fails. */
  async start(): Promise<void> {
    this.#informers = this.#makeInformers();
    for (const informer of this.#informers) informer.start();
    await Promise.all(this.#informers.map(({ synced }) => synced));
    await this.#ensureNamespaces();
    await Promise.all([
      this.#options.createsDefaultRoles ? reconcileDefaultPolicy(this.client) : undefined,
      this.#ensureDefaults(),
    ]);
    if (this.#stop.aborted) return;
    this.#timer = this.#deps.clock.every(DEFAULTS_PERIOD_MS, () => void this.#keepDefaults());
    this.#isReady = true;
    this.#election.start();
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    for (const informer of this.#informers) informer.stop();
    await this.#election.stop();
    this.#stop.abort(STOPPED);
  }

  #chain(): AdmissionChain {
    const { served, authorizer, clock, random, logger, webhooks } = this.#deps;
    const namespaces = this.#namespaces;
    const calls = {
      caller: webhooks,
      clock,
      random: random.fork("admission reviews"),
      logger: logger.child("apiserver/webhooks"),
      served,
      namespaces,
      authorizer,
    };
    const optional = (name: PluginName, make: () => AdmissionPlugin): AdmissionPlugin[] =>
      this.#options.plugins.has(name) ? [make()] : [];
    return new AdmissionChain([
      namespaceLifecycle(namespaces, clock),
      ...optional("LimitRanger", () => limitRanger(this.#present(LIMIT_RANGES))),
      ...optional("ServiceAccount", () =>
        serviceAccount({
          find: this.#finder(ACCOUNTS),
          clock,
          random: random.fork("tokens of pods"),
        }),
      ),
      ...optional("TaintNodesByCondition", nodeTaints),
      ...optional("Priority", () => podPriority(this.#defaultPriorities, this.#finder(PRIORITIES))),
      ...optional("RuntimeClass", () => runtimeClass(this.#finder(RUNTIMES))),
      signerPermissions(authorizer),
      ...optional("CertificateSubjectRestriction", subjectRestriction),
      ...optional("MutatingAdmissionPolicy", () => mutatingPolicies(this.#mutatingPolicies, calls)),
      mutatingWebhooks(this.#mutating, calls),
      ...optional("OwnerReferencesPermissionEnforcement", () =>
        ownerReferencesPermission(authorizer, served),
      ),
      ...optional("ValidatingAdmissionPolicy", () =>
        validatingPolicies(this.#validatingPolicies, calls),
      ),
      validatingWebhooks(this.#validating, calls),
      // The last one: what is refused uses nothing.
      ...optional("ResourceQuota", () => resourceQuota(this.#quotaDeps)),
    ]);
  }

  /** From the informer of the resource, and from the store where that is behind. */
  #finder(ref: ResourceRef): FindNamed {
    return async (name, namespace = "") => {
      const known = this.#named.get(ref)?.get(namespace, name);
      if (known !== undefined || isDns1123Subdomain(name).length > 0) return known;
      return this.client.get(ref, namespace, name);
    };
  }

  /** Reads all of a namespace at each request that they judge: one that was just made counts. */
  #present(
    ref: ResourceRef,
  ): (namespace: string, isNow?: boolean) => Promise<readonly KubeObject[]> {
    return async (namespace, isNow = true) => {
      const from = { resourceVersion: isNow ? "" : "0" } as const;
      const { items } = await this.client.list(ref, namespace, 0, from);
      return items.map((item) => item.object());
    };
  }

  get #quotaDeps(): QuotaDeps {
    return {
      counts: this.#quotas,
      quotasOf: this.#present(QUOTAS),
      writeStatus: async (quota) => {
        const { namespace = "", name = "", resourceVersion } = quota.metadata;
        const change = (): KubeObject => quota;
        await this.client.update(QUOTA_STATUS, namespace, name, change, { resourceVersion });
      },
      nowMs: () => this.#deps.clock.wallMs(),
    };
  }

  /** Counts the quotas of each namespace. */
  get #quotaHandler(): InformerHandler {
    const count = ({ metadata: { namespace = "" } }: KubeObject, by: number): void => {
      const left = (this.#quotas.get(namespace) ?? 0) + by;
      if (left > 0) this.#quotas.set(namespace, left);
      else this.#quotas.delete(namespace);
    };
    const { added, deleted } = this.#refreshing(
      (quota) => count(quota, 1),
      (quota) => count(quota, -1),
    );
    return { added, deleted };
  }

  /** Tells admission when what a plug-in judges by has changed. */
  #refreshing(set: (object: KubeObject) => void, remove: (object: KubeObject) => void) {
    const then = (change: (object: KubeObject) => void) => (object: KubeObject) => {
      change(object);
      this.admission.refresh();
    };
    return { added: then(set), updated: then(set), deleted: then(remove) };
  }

  #makeInformers(): readonly Informer[] {
    const { plugins } = this.#options;
    const follow = (ref: ResourceRef, handler: InformerHandler): void => {
      this.#named.set(ref, this.#informer(ref.group, ref.resource, handler));
    };
    if (plugins.has("Priority")) follow(PRIORITIES, this.#defaultPriorities);
    if (plugins.has("RuntimeClass")) follow(RUNTIMES, {});
    if (plugins.has("ServiceAccount")) follow(ACCOUNTS, {});
    const webhooksOf = (list: WebhookList): InformerHandler =>
      this.#refreshing(
        (configuration) => list.set(configuration),
        (configuration) => list.delete(configuration),
      );
    const policiesOf = (list: PolicyList): InformerHandler =>
      this.#refreshing(
        (policy) => list.setPolicy(policy),
        (policy) => list.deletePolicy(policy),
      );
    const bindingsOf = (list: PolicyList): InformerHandler =>
      this.#refreshing(
        (binding) => list.setBinding(binding),
        (binding) => list.deleteBinding(binding),
      );
    const of = (resource: string, handler: InformerHandler): Informer =>
      this.#informer(ADMISSION_GROUP, resource, handler);
    return [
      this.#informer("", "namespaces", this.#namespaces),
      ...(plugins.has("ResourceQuota")
        ? [this.#informer("", QUOTAS.resource, this.#quotaHandler)]
        : []),
      ...this.#named.values(),
      of(WEBHOOK_RESOURCES.mutating, webhooksOf(this.#mutating)),
      of(WEBHOOK_RESOURCES.validating, webhooksOf(this.#validating)),
      of(POLICY_RESOURCES.mutating, policiesOf(this.#mutatingPolicies)),
      of(POLICY_RESOURCES.mutatingBindings, bindingsOf(this.#mutatingPolicies)),
      of(POLICY_RESOURCES.validating, policiesOf(this.#validatingPolicies)),
      of(POLICY_RESOURCES.validatingBindings, bindingsOf(this.#validatingPolicies)),
    ];
  }

  #informer(group: string, resource: string, handler: InformerHandler): Informer {
    const { served, clock, random, logger } = this.#deps;
    const { storage } = defined(served.find(group, "v1", resource, ""), "the served resource");
    return new Informer({ storage: storage as Lister & Watcher }, handler, {
      clock,
      random: random.fork(`informer ${resource}`),
      logger,
    });
  }

  async #ensureNamespaces(): Promise<void> {
    const missing = DEFAULT_NAMESPACES.filter((name) => !this.#namespaces.cached(name));
    await Promise.all(missing.map((name) => this.#createNamespace(name)));
  }

  async #createNamespace(name: string): Promise<void> {
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
    try {
      await this.client.create(NAMESPACES, "", namespace);
    } catch (error) {
      // Another server was first.
      if (!isAlreadyExists(error)) throw error;
    }
  }

  async #ensureDefaults(): Promise<void> {
    if (this.#options.createsDefaultObjects !== true) return;
    await ensureDefaultObjects(this.client, this.#deps.clock.wallMs());
  }

  async #keepDefaults(): Promise<void> {
    try {
      await this.#ensureNamespaces();
      await this.#ensureDefaults();
    } catch (error) {
      const text = textOf(error);
      this.#deps.logger.warn("the default objects could not be checked", { error: text });
    }
  }

  #startControllers(): void {
    const { served, clock, random, logger, expressions } = this.#deps;
    const { rootCaPem, controllers: enabled = new Set(CONTROLLERS) } = this.#options;
    const controllers = new Controllers(
      { rootCaPem, enabled },
      {
        client: this.client,
        served,
        clock,
        expressions,
        random: random.fork("controllers"),
        logger: logger.child("apiserver/controllers"),
      },
    );
    this.#controllers = controllers;
    void controllers.start();
  }

  #stopControllers(): void {
    this.#controllers?.stop();
    this.#controllers = undefined;
  }
}
