/** All controllers of a server; they run on the server that leads. */

import type { Clock, Logger, Random } from "@quorate/host";
import {
  fieldEquals,
  type KubeObject,
  type Lister,
  type ServedResources,
  type Watcher,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { POLICY_RESOURCES } from "../admission/policy-kinds.ts";
import { ADMISSION_GROUP } from "../admission/webhook-kinds.ts";
import { RBAC_GROUP } from "../authz/rules.ts";
import { objectOf } from "../builtin/rules/rules.ts";
import { ADDRESSES, RANGES } from "../builtin/service-addresses.ts";
import type { RequestExpressions } from "../crd/cel/request-expressions.ts";
import { Informer, type InformerHandler } from "../informers/informer.ts";
import type { LocalClient } from "../informers/local-client.ts";
import { RoleAggregation } from "./aggregation.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { GcMonitors } from "./gc-graph.ts";
import { DEFAULT_SERVICE_ACCOUNT, NamespaceContent, ROOT_CA_NAME } from "./namespace-content.ts";
import { NamespaceDeletion } from "./namespace-deletion.ts";
import { PolicyStatus } from "./policy-status.ts";
import { QuotaStatus } from "./quota-status.ts";
import { ServiceCidrs } from "./service-cidrs.ts";

export interface ControllersDependencies {
  /** Of policies. */
  readonly expressions: RequestExpressions;
  readonly client: LocalClient;
  readonly served: ServedResources;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** By kube-controller-manager's names (--controllers). */
export const CONTROLLERS = [
  "clusterrole-aggregation-controller",
  "garbage-collector-controller",
  "namespace-controller",
  "resourcequota-controller",
  "root-ca-certificate-publisher-controller",
  "service-cidr-controller",
  "serviceaccount-controller",
  "validatingadmissionpolicy-status-controller",
] as const;

export type ControllerName = (typeof CONTROLLERS)[number];

export interface ControllersOptions {
  /** For kube-root-ca.crt; "" for none. */
  readonly rootCaPem: string;
  readonly enabled: ReadonlySet<ControllerName>;
}

/** One epoch of leadership: made, started and stopped once. */
export class Controllers {
  readonly #enabled: ReadonlySet<ControllerName>;
  readonly #deps: ControllersDependencies;
  readonly #namespaces: Informer;
  readonly #informers: readonly Informer[];
  readonly #deletion: NamespaceDeletion;
  readonly #content: NamespaceContent;
  readonly #aggregation: RoleAggregation;
  readonly #policies: PolicyStatus;
  readonly #quotas: QuotaStatus | undefined;
  readonly #cidrs: ServiceCidrs | undefined;
  readonly #collector: GarbageCollector;
  readonly #monitors: GcMonitors;
  #stopped = false;

  constructor({ rootCaPem, enabled }: ControllersOptions, deps: ControllersDependencies) {
    this.#enabled = enabled;
    this.#deps = deps;
    const publishesCa = enabled.has("root-ca-certificate-publisher-controller");
    const contents = {
      rootCaPem: publishesCa ? rootCaPem : "",
      makesServiceAccounts: enabled.has("serviceaccount-controller"),
    };
    const { client, clock, logger, served } = deps;
    this.#deletion = new NamespaceDeletion(deps, () => {
      for (const namespace of this.#namespaces.objects()) this.#deletion.observe(namespace);
    });
    this.#content = new NamespaceContent(contents, {
      client,
      clock,
      logger,
      namespace: (name) => this.#namespaces.get("", name),
      namespaces: () => this.#namespaces.objects(),
    });
    this.#aggregation = new RoleAggregation(client, clock, logger);
    this.#policies = new PolicyStatus(deps);
    this.#quotas = enabled.has("resourcequota-controller") ? new QuotaStatus(deps) : undefined;
    this.#cidrs = enabled.has("service-cidr-controller") ? new ServiceCidrs(deps) : undefined;
    this.#collector = new GarbageCollector(deps);
    this.#monitors = new GcMonitors(served, this.#collector.graph, deps);
    this.#namespaces = this.#informer("", "namespaces", this.#namespaceHandler);
    this.#informers = [
      this.#namespaces,
      this.#informer("", "serviceaccounts", this.#contentHandler, DEFAULT_SERVICE_ACCOUNT),
      this.#informer("", "configmaps", this.#contentHandler, ROOT_CA_NAME),
      ...(enabled.has("clusterrole-aggregation-controller")
        ? [
            this.#informer(RBAC_GROUP, "clusterroles", {
              added: (role) => this.#aggregation.observe(role),
              updated: (role) => this.#aggregation.observe(role),
              deleted: (role) => this.#aggregation.remove(role),
            }),
          ]
        : []),
      ...(enabled.has("validatingadmissionpolicy-status-controller")
        ? [
            this.#informer(ADMISSION_GROUP, POLICY_RESOURCES.validating, {
              added: (policy) => this.#policies.observe(policy),
              updated: (policy) => this.#policies.observe(policy),
              deleted: (policy) => this.#policies.remove(policy),
            }),
          ]
        : []),
      ...(this.#quotas === undefined ? [] : this.#quotaInformers(this.#quotas)),
      ...(this.#cidrs === undefined ? [] : this.#cidrInformers(this.#cidrs)),
    ];
  }

  /** Of quotas, and of what quotas count most. */
  #quotaInformers(quotas: QuotaStatus): Informer[] {
    const changed = ({ metadata }: KubeObject): void => quotas.changed(metadata.namespace ?? "");
    const less = { updated: changed, deleted: changed };
    const ended: InformerHandler = {
      deleted: changed,
      updated(pod, old) {
        const phase = (one: KubeObject): unknown => objectOf(one["status"])["phase"];
        if (phase(pod) !== phase(old)) changed(pod);
      },
    };
    return [
      this.#informer("", "resourcequotas", {
        added: (quota) => quotas.observe(quota),
        updated: (quota) => quotas.observe(quota),
        deleted: (quota) => quotas.remove(quota),
      }),
      this.#informer("", "pods", ended),
      this.#informer("", "services", less),
      this.#informer("", "persistentvolumeclaims", less),
      this.#informer("", "configmaps", { deleted: changed }),
      this.#informer("", "secrets", { deleted: changed }),
    ];
  }

  #cidrInformers(cidrs: ServiceCidrs): Informer[] {
    const { group } = RANGES;
    return [
      this.#informer(group, RANGES.resource, {
        added: (range) => cidrs.observe(range),
        updated: (range) => cidrs.observe(range),
        deleted: (range) => cidrs.remove(range),
      }),
      this.#informer(group, ADDRESSES.resource, { deleted: () => cidrs.addressGone() }),
    ];
  }

  /** Resolves when the collector has begun. */
  async start(): Promise<void> {
    for (const informer of this.#informers) informer.start();
    if (!this.#enabled.has("garbage-collector-controller")) return;
    await this.#monitors.start();
    if (!this.#stopped) this.#collector.run();
  }

  stop(): void {
    this.#stopped = true;
    for (const informer of this.#informers) informer.stop();
    this.#monitors.stop();
    this.#deletion.stop();
    this.#content.stop();
    this.#aggregation.stop();
    this.#policies.stop();
    this.#quotas?.stop();
    this.#cidrs?.stop();
    this.#collector.stop();
  }

  get #namespaceHandler(): InformerHandler {
    const observe = (namespace: KubeObject): void => {
      if (this.#enabled.has("namespace-controller")) this.#deletion.observe(namespace);
      this.#content.check(namespace.metadata.name ?? "");
    };
    return {
      added: observe,
      updated(namespace, old) {
        // A change of the status alone, such as a report of the deletion's progress.
        const isNew = namespace.metadata.deletionTimestamp !== old.metadata.deletionTimestamp;
        if (isNew) observe(namespace);
      },
    };
  }

  get #contentHandler(): InformerHandler {
    const check = ({ metadata }: KubeObject): void => this.#content.check(metadata.namespace ?? "");
    return { updated: check, deleted: check };
  }

  #informer(group: string, resource: string, handler: InformerHandler, name?: string): Informer {
    const { served } = this.#deps;
    const { storage } = defined(served.find(group, "v1", resource, ""), "the served resource");
    const field = name === undefined ? undefined : fieldEquals("metadata.name", name);
    return new Informer({ storage: storage as Lister & Watcher, field }, handler, this.#deps);
  }
}
