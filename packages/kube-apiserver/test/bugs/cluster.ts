/** An API server with faults, and the rest of a cluster: stateful sets get volumes and pods. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { ChaosFault, ChaosSettings } from "@quorate/kube-apiserver";
import { type RunningApiServer, startApiServer } from "@quorate/kube-apiserver/node";
import { load } from "js-yaml";

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind
export type Any = any;

const SETS = "/apis/apps/v1/namespaces/default/statefulsets";
export const CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims";
const PODS = "/api/v1/namespaces/default/pods";
const MERGE = "application/merge-patch+json";

export class Cluster implements AsyncDisposable {
  readonly api: RunningApiServer;
  readonly faults: ChaosFault[];
  /** "DELETE statefulsets/NAME" and the like, of what is watched, in order. */
  readonly deleted: string[] = [];
  #isOver = false;
  readonly #loop: Promise<void>;

  private constructor(api: RunningApiServer, faults: ChaosFault[]) {
    this.api = api;
    this.faults = faults;
    this.#loop = this.#act();
  }

  static async start(chaos: ChaosSettings, onFault: (fault: ChaosFault) => void): Promise<Cluster> {
    const faults: ChaosFault[] = [];
    const api = await startApiServer({
      chaos,
      onFault: (fault) => {
        faults.push(fault);
        onFault(fault);
      },
    });
    return new Cluster(api, faults);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#loop;
    await this.api.stop();
  }

  async items(path: string): Promise<Any[]> {
    return (await this.api.request(path)).body.items ?? [];
  }

  async get(path: string): Promise<Any> {
    const { status, body } = await this.api.request(path);
    return status === 200 ? body : undefined;
  }

  async create(path: string, body: unknown): Promise<void> {
    const { status, body: answer } = await this.api.request(path, { method: "POST", body });
    if (status >= 300 && status !== 409) throw new Error(`${path}: ${answer.message}`);
  }

  async patch(path: string, body: unknown): Promise<void> {
    const { status, body: answer } = await this.api.request(path, {
      method: "PATCH",
      body,
      contentType: MERGE,
    });
    if (status >= 300 && status !== 404) throw new Error(`${path}: ${answer.message}`);
  }

  async remove(path: string): Promise<void> {
    await this.api.request(path, { method: "DELETE" });
  }

  /** Looks until it holds. Rejects after `limitMs`. */
  async until(what: string, holds: () => Promise<unknown>, limitMs = 90_000): Promise<void> {
    const endMs = performance.now() + limitMs;
    while (!(await holds())) {
      if (performance.now() > endMs) throw new Error(`not within ${limitMs / 1000} s: ${what}`);
      await delay(100);
    }
  }

  /** Defines a custom kind from a file, which may be of apiextensions.k8s.io/v1beta1. */
  async define(file: string): Promise<void> {
    const definition = inV1(load(readFileSync(file, "utf8")));
    await this.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    const name = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition.metadata.name}`;
    await this.until("the definition is established", async () =>
      (await this.get(name))?.status?.conditions?.some(
        ({ type, status }: Any) => type === "Established" && status === "True",
      ),
    );
  }

  /** As the controller of stateful sets, and nodes on which all is ready at once. */
  async #act(): Promise<void> {
    while (!this.#isOver) {
      const [sets, pods] = [await this.items(SETS), await this.items(PODS)];
      for (const set of sets)
        if (set.metadata.deletionTimestamp === undefined) await this.#fill(set);
      for (const { metadata } of pods) {
        const [owner] = metadata.ownerReferences ?? [];
        if (metadata.deletionTimestamp !== undefined) await this.#end(metadata.name);
        else if (owner !== undefined && !sets.some((set) => set.metadata.uid === owner.uid))
          await this.#end(metadata.name);
      }
      await delay(100);
    }
  }

  async #end(pod: string): Promise<void> {
    const body = { gracePeriodSeconds: 0 };
    await this.api.request(`${PODS}/${pod}`, { method: "DELETE", body });
  }

  async #fill(set: Any): Promise<void> {
    const { name, uid, generation } = set.metadata;
    const { replicas = 1, template, selector, volumeClaimTemplates = [] } = set.spec;
    for (let at = 0; at < replicas; at++) {
      for (const claim of volumeClaimTemplates) {
        const claimName = `${claim.metadata.name}-${name}-${at}`;
        if ((await this.get(`${CLAIMS}/${claimName}`)) !== undefined) continue;
        const labels = { ...claim.metadata.labels, ...selector.matchLabels };
        const { ownerReferences } = claim.metadata;
        const metadata = { name: claimName, labels, ownerReferences };
        const kind = { apiVersion: "v1", kind: "PersistentVolumeClaim" };
        await this.create(CLAIMS, { ...kind, metadata, spec: claim.spec });
        await this.patch(`${CLAIMS}/${claimName}/status`, { status: { phase: "Bound" } });
      }
      const podName = `${name}-${at}`;
      if ((await this.get(`${PODS}/${podName}`)) !== undefined) continue;
      const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name, uid, controller: true };
      await this.create(PODS, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: podName, labels: template.metadata.labels, ownerReferences: [owner] },
        spec: { containers: [{ name: "one", image: "one" }] },
      });
      await this.patch(`${PODS}/${podName}/status`, {
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
      });
    }
    const status = {
      replicas,
      readyReplicas: replicas,
      currentReplicas: replicas,
      updatedReplicas: replicas,
      observedGeneration: generation,
    };
    if (set.status?.readyReplicas !== replicas || set.status?.observedGeneration !== generation)
      await this.patch(`${SETS}/${name}/status`, { status });
  }
}

/** A definition of v1beta1, as conversion in Kubernetes made it; its schema prunes nothing. */
function inV1(definition: Any): Any {
  if (definition.apiVersion === "apiextensions.k8s.io/v1") return definition;
  const { group, names, scope, version, subresources, versions } = definition.spec;
  const openAPIV3Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const named = versions ?? [{ name: version, served: true, storage: true }];
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: definition.metadata.name },
    spec: {
      group,
      names,
      scope,
      versions: named.map(({ name, served, storage }: Any) => {
        return { name, served, storage, subresources, schema: { openAPIV3Schema } };
      }),
    },
  };
}
