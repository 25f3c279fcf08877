/**
 * Counts what the ResourceQuotas of a cluster have used, and puts what they limit into force
 * (Kubernetes: pkg/controller/resourcequota). Admission adds what is new; this finds what is gone.
 *
 *     a new or changed quota               counted at once
 *     a deleted object, a pod that ended   the quotas of its namespace
 *     all others                           every 30 s
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import {
  type Amounts,
  added,
  type KubeObject,
  masked,
  type ServedResource,
  type ServedResources,
  sameAmounts,
  semanticEqual,
} from "@quorate/kube-storage";
import { keyOf } from "../informers/informer.ts";
import { isConflict, isNotFound, type LocalClient } from "../informers/local-client.ts";
import { evaluatorOf } from "../quota/evaluators.ts";
import {
  hardOf,
  isInScopes,
  QUOTA_STATUS,
  QUOTAS,
  usedOf,
  wantedOf,
  withStatus,
} from "../quota/quotas.ts";
import { WorkQueue } from "./work-queue.ts";

export const QUOTA_PERIOD_MS = 30_000;
export const MAX_COUNTED_QUOTAS = 100_000;

export interface QuotaStatusDeps {
  readonly client: LocalClient;
  readonly served: ServedResources;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class QuotaStatus {
  readonly #deps: QuotaStatusDeps;
  /** The names of the quotas, by namespace. */
  readonly #names = new Map<string, Set<string>>();
  readonly #queue: WorkQueue<string>;
  readonly #timer: Timer;

  constructor(deps: QuotaStatusDeps) {
    this.#deps = deps;
    const addAll = (): void => {
      for (const namespace of this.#names.keys()) this.changed(namespace);
    };
    this.#queue = new WorkQueue(
      {
        name: "resource quotas",
        concurrency: 2,
        maxKeys: MAX_COUNTED_QUOTAS,
        process: (key) => this.#process(key),
        rescan: addAll,
      },
      deps.clock,
      deps.logger,
    );
    this.#timer = deps.clock.every(QUOTA_PERIOD_MS, addAll);
  }

  /** Call it with each quota as it changes. */
  observe(quota: KubeObject): void {
    const { namespace = "", name = "" } = quota.metadata;
    const names = this.#names.get(namespace) ?? new Set();
    const isNew = !names.has(name);
    this.#names.set(namespace, names.add(name));
    if (isNew || !semanticEqual(wantedOf(quota), hardOf(quota))) this.#queue.add(keyOf(quota));
  }

  remove({ metadata: { namespace = "", name = "" } }: KubeObject): void {
    const names = this.#names.get(namespace);
    names?.delete(name);
    if (names?.size === 0) this.#names.delete(namespace);
  }

  /** Something in the namespace may use less than before. */
  changed(namespace: string): void {
    for (const name of this.#names.get(namespace) ?? []) this.#queue.add(`${namespace}/${name}`);
  }

  stop(): void {
    this.#timer.cancel();
    this.#queue.stop();
  }

  async #process(key: string): Promise<boolean> {
    const { client } = this.#deps;
    const [namespace = "", name = ""] = key.split("/");
    const quota = await client.get(QUOTAS, namespace, name);
    if (quota === undefined) return true;
    const hard = wantedOf(quota);
    const used = await this.#count(quota, namespace);
    if (semanticEqual(hard, hardOf(quota)) && sameAmounts(used, usedOf(quota))) return true;
    try {
      // What was charged since is not lost: the quota is counted again.
      const { resourceVersion } = quota.metadata;
      const change = (present: KubeObject): KubeObject => withStatus(present, { hard, used });
      await client.update(QUOTA_STATUS, namespace, name, change, { resourceVersion });
      return true;
    } catch (error) {
      if (isNotFound(error)) return true;
      if (isConflict(error)) return false;
      throw error;
    }
  }

  /** What the objects of the namespace use of the quota. */
  async #count(quota: KubeObject, namespace: string): Promise<Amounts> {
    const hard = Object.keys(wantedOf(quota));
    const { client, clock } = this.#deps;
    const nowMs = clock.wallMs();
    let used: Amounts = {};
    for (const resource of this.#countable()) {
      const evaluator = evaluatorOf(resource.group, resource.resource);
      const names = hard.filter((name) => evaluator.counts(name));
      if (names.length === 0) continue;
      used = added(used, Object.fromEntries(names.map((name) => [name, "0"])));
      await client.each(resource, namespace, (object) => {
        if (!isInScopes(quota, object, evaluator)) return;
        used = added(used, masked(evaluator.usage(object, nowMs), names));
      });
    }
    return used;
  }

  /** Each resource once, whatever its versions. */
  #countable(): Iterable<ServedResource> {
    const all = new Map<string, ServedResource>();
    for (const one of this.#deps.served.all()) {
      const key = `${one.group}/${one.resource}`;
      const isListed = one.subresource === "" && one.namespaced && "list" in one.storage;
      if (isListed && !all.has(key)) all.set(key, one);
    }
    return all.values();
  }
}
