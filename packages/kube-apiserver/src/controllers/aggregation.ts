/**
 * Fills in the rules of ClusterRoles with an aggregationRule (Kubernetes: pkg/controller/
 * clusterroleaggregation): those of all roles that its selectors choose, each once, in the order of
 * the roles' names.
 */
import type { Clock, Logger } from "@quorate/host";
import type { KubeObject } from "@quorate/kube-storage";
import { selectorOfObject, semanticEqual } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { aggregationSelectors } from "../authz/rbac-validation.ts";
import { type PolicyRule, RBAC_GROUP, rulesOf } from "../authz/rules.ts";
import {
  isConflict,
  isNotFound,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";
import { WorkQueue } from "./work-queue.ts";

const CLUSTER_ROLES: ResourceRef = { group: RBAC_GROUP, version: "v1", resource: "clusterroles" };
export const MAX_AGGREGATED_ROLES = 10_000;

export class RoleAggregation {
  readonly #client: LocalClient;
  readonly #roles = new Map<string, KubeObject>();
  readonly #aggregated = new Set<string>();
  readonly #queue: WorkQueue<string>;

  constructor(client: LocalClient, clock: Clock, logger: Logger) {
    this.#client = client;
    this.#queue = new WorkQueue(
      {
        name: "aggregated roles",
        concurrency: 1,
        maxKeys: MAX_AGGREGATED_ROLES,
        process: (name) => this.#process(name),
        rescan: () => this.#enqueueAll(),
      },
      clock,
      logger,
    );
  }

  /** Call it with each ClusterRole as it changes. */
  observe(role: KubeObject): void {
    const name = role.metadata.name ?? "";
    this.#roles.set(name, role);
    if (aggregationSelectors(role) === undefined) this.#aggregated.delete(name);
    else this.#aggregated.add(name);
    this.#enqueueAll();
  }

  remove(role: KubeObject): void {
    const name = role.metadata.name ?? "";
    this.#roles.delete(name);
    this.#aggregated.delete(name);
    this.#enqueueAll();
  }

  stop(): void {
    this.#queue.stop();
  }

  #enqueueAll(): void {
    for (const name of this.#aggregated) this.#queue.add(name);
  }

  async #process(name: string): Promise<boolean> {
    const role = this.#roles.get(name);
    if (role === undefined) return true;
    const rules = this.#rulesFor(role);
    if (rules === undefined || semanticEqual(rules, rulesOf(role))) return true;
    try {
      await this.#client.update(CLUSTER_ROLES, "", name, (present) =>
        aggregationSelectors(present) === undefined ? undefined : { ...present, rules },
      );
      return true;
    } catch (error) {
      if (isNotFound(error)) return true;
      if (isConflict(error)) return false;
      throw error;
    }
  }

  #rulesFor(role: KubeObject): readonly PolicyRule[] | undefined {
    const selectors = aggregationSelectors(role)?.map(selectorOfObject);
    if (selectors === undefined) return undefined;
    const rules = new Map<string, PolicyRule>();
    for (const name of [...this.#roles.keys()].sort()) {
      const other = defined(this.#roles.get(name), "the role");
      const labels = other.metadata.labels ?? {};
      if (other.metadata.name === role.metadata.name) continue;
      if (!selectors.some((selector) => selector.matches(labels))) continue;
      for (const rule of rulesOf(other)) rules.set(JSON.stringify(rule), rule);
    }
    return [...rules.values()];
  }
}
