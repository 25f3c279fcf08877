/** CustomResourceDefinitions over a cluster in memory, for tests. Several worlds may share one. */
import assert from "node:assert/strict";
import { SeededRandom, silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import {
  ANONYMOUS,
  identityTransformer,
  type KubeObject,
  type RestStorage,
  type ServedResource,
  type WatchEvent,
} from "@quorate/kube-storage";
import { MemoryCluster } from "@quorate/kube-storage/testing";
import type { WebhookCaller } from "../../src/admission/webhook-caller.ts";
import { CustomResources } from "../../src/crd/runtime.ts";
import { ResourceStorages } from "../../src/server/resource-storages.ts";
import { ResourceTable } from "../../src/server/resource-table.ts";
import { definition } from "../crd/cases.ts";
import { DELETE, listOptions, WRITE } from "./registry-world.ts";

const GROUP = "recorded.example";

export interface WorldOptions {
  readonly cluster?: MemoryCluster;
  readonly webhooks?: WebhookCaller;
  readonly establishDelayMs?: number;
}

const NO_WEBHOOKS: WebhookCaller = {
  call: () => Promise.reject(new Error("no webhook is expected")),
};

export class CrdWorld {
  readonly cluster: MemoryCluster;
  readonly table = new ResourceTable();
  readonly storages: ResourceStorages;
  readonly resources: CustomResources;
  readonly warnings: string[] = [];

  private constructor(options: WorldOptions) {
    this.cluster = options.cluster ?? new MemoryCluster();
    const random = new SeededRandom(11n);
    const logger = silentLogger;
    this.storages = new ResourceStorages(
      { root: "/registry", takesShards: false, isCached: true, compactionIntervalMs: 0 },
      {
        cluster: this.cluster,
        clock: nodeClock,
        random,
        logger,
        transformerOf: () => identityTransformer,
      },
    );
    this.resources = new CustomResources(
      { establishDelayMs: options.establishDelayMs ?? 0 },
      {
        storages: this.storages,
        table: this.table,
        webhooks: options.webhooks ?? NO_WEBHOOKS,
        isBuiltIn: () => false,
        collectsGarbage: false,
        clock: nodeClock,
        random,
        logger,
      },
    );
    this.table.set("definitions", this.resources.served);
    this.resources.start();
  }

  static async open(options: WorldOptions = {}): Promise<CrdWorld> {
    const world = new CrdWorld(options);
    await world.resources.ready();
    return world;
  }

  async close(): Promise<void> {
    await this.resources.stop();
    await this.storages.close();
  }

  ctx(namespace = "default") {
    const signal = new AbortController().signal;
    return { user: ANONYMOUS, namespace, signal, warn: (text: string) => this.warnings.push(text) };
  }

  /** The endpoint of a custom resource, or of definitions. */
  find(resource: string, version = "v1", subresource = ""): ServedResource | undefined {
    const group = resource === "customresourcedefinitions" ? "apiextensions.k8s.io" : GROUP;
    return this.table.find(group, version, resource, subresource);
  }

  at(resource: string, version = "v1", subresource = ""): Required<RestStorage> {
    const found = this.find(resource, version, subresource);
    assert.ok(found, `${resource} ${version} ${subresource} is not served`);
    return found.storage as Required<RestStorage>;
  }

  /** Creates a definition and waits until it is established. */
  async define(crd: object): Promise<KubeObject> {
    const made = await this.create("customresourcedefinitions", crd, "v1", "");
    return await this.untilEstablished(made.metadata.name!);
  }

  async defineSchema(plural: string, schema: unknown, more: object = {}): Promise<KubeObject> {
    return await this.define(definition(plural, schema as never, more as never));
  }

  async crd(name: string): Promise<KubeObject> {
    const storage = this.at("customresourcedefinitions");
    return (await storage.get(this.ctx(""), name, { resourceVersion: "" })).object();
  }

  async untilEstablished(name: string): Promise<KubeObject> {
    return await until(async () => {
      const crd = await this.crd(name);
      return conditionStatus(crd, "Established") === "True" ? crd : undefined;
    });
  }

  /** As a client creates an object: decoded first. */
  async create(
    resource: string,
    object: object,
    version = "v1",
    namespace = "default",
    dryRun = false,
  ) {
    const { object: decoded } = this.find(resource, version)!.decode(object);
    const storage = this.at(resource, version);
    return await storage.create(this.ctx(namespace), decoded, async () => {}, { ...WRITE, dryRun });
  }

  /** As a client replaces an object. */
  async put(resource: string, object: object, version = "v1", subresource = "", dryRun = false) {
    const served = this.find(resource, version, subresource)!;
    const { object: decoded } = served.decode(object);
    const accept = async () => {};
    const make = async () => decoded;
    const namespace = served.namespaced ? "default" : "";
    const storage = this.at(resource, version, subresource);
    const name = decoded.metadata.name!;
    const made = await storage.update(this.ctx(namespace), name, { make }, accept, accept, false, {
      ...WRITE,
      dryRun,
    });
    return made.object;
  }

  async get(resource: string, name: string, version = "v1", subresource = ""): Promise<KubeObject> {
    const namespaced = this.find(resource, version)!.namespaced;
    const ctx = this.ctx(namespaced ? "default" : "");
    const storage = this.at(resource, version, subresource);
    return (await storage.get(ctx, name, { resourceVersion: "" })).object();
  }

  async list(resource: string, version = "v1", predicate = {}): Promise<KubeObject[]> {
    const listed = await this.at(resource, version).list(this.ctx(), listOptions(predicate));
    return listed.items.map((item) => item.object());
  }

  async delete(resource: string, name: string, version = "v1"): Promise<void> {
    const namespaced = this.find(resource, version)!.namespaced;
    const ctx = this.ctx(namespaced ? "default" : "");
    await this.at(resource, version).delete(ctx, name, async () => {}, DELETE);
  }

  /** The events of a watch from the present state on. */
  async watch(resource: string, version = "v1", more: { sendInitialEvents?: boolean } = {}) {
    const events: WatchEvent[] = [];
    let isOver = false;
    const watch = await this.at(resource, version).watch(this.ctx(), {
      ...listOptions({ allowWatchBookmarks: more.sendInitialEvents === true }),
      ...more,
    });
    watch.start({
      event: (event) => {
        events.push(event);
        return true;
      },
      ended: () => {
        isOver = true;
      },
    });
    return { events, stop: () => watch.stop(), isOver: () => isOver };
  }
}

export function conditionStatus(crd: KubeObject, type: string): string | undefined {
  const status = crd["status"] as { conditions?: { type: string; status: string }[] } | undefined;
  return status?.conditions?.find((one) => one.type === type)?.status;
}

/** Waits until the function returns a value; at most ten seconds. */
export async function until<T>(probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const endMs = performance.now() + 10_000;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    assert.ok(performance.now() < endMs, "the condition did not come true");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
