/** A resource's store over memory, for tests of strategies and of the store itself. */
import { SeededRandom } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  ANONYMOUS,
  ApiError,
  attributesOf,
  type EtcdStore,
  EVERYTHING,
  type GroupVersionKind,
  jsonCodec,
  type KindSource,
  type KubeObject,
  type RequestContext,
  type ResourceParts,
  type ResourceSpec,
  type RestDeleteOptions,
  type RestListOptions,
  type RestStorage,
  type UpdatedObject,
  type WriteOptions,
} from "@quorate/kube-storage";
import { type MemoryCluster, memoryStorage } from "@quorate/kube-storage/testing";
import { storagesOf } from "../../src/builtin/served-resources.ts";

/** 2026-01-02T03:04:05Z. */
export const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

export const WRITE: WriteOptions = { dryRun: false, fieldManager: "test", fieldValidation: "Warn" };
export const DRY: WriteOptions = { ...WRITE, dryRun: true };
export const DELETE: RestDeleteOptions = { dryRun: false };

export function sourceOf(kind: GroupVersionKind): KindSource {
  return {
    kind,
    codec: jsonCodec,
    schema: undefined,
    decode: (value) => ({ object: value as KubeObject, strictErrors: [] }),
    protobuf: undefined,
  };
}

export function listOptions(
  predicate: Partial<RestListOptions["predicate"]> = {},
): RestListOptions {
  return {
    predicate: {
      label: EVERYTHING,
      field: EVERYTHING,
      limit: 0,
      continueToken: "",
      allowWatchBookmarks: false,
      ...predicate,
    },
    resourceVersion: "",
    resourceVersionMatch: "",
  };
}

/** One resource with its storage and its requests. */
export class RegistryWorld {
  readonly spec: ResourceSpec;
  readonly clock: ManualClock;
  readonly storage: EtcdStore;
  readonly cluster: MemoryCluster;
  readonly parts: ResourceParts;
  readonly main: Required<RestStorage>;
  readonly subresources: Readonly<Record<string, RestStorage>>;
  readonly warnings: string[] = [];
  readonly admitted: KubeObject[] = [];
  readonly #namespace: string;
  readonly admit = async (object: KubeObject): Promise<void> => {
    this.admitted.push(object);
  };

  constructor(spec: ResourceSpec) {
    this.spec = spec;
    this.clock = new ManualClock(START_MS);
    const { storage, cluster } = memoryStorage({
      kind: spec.kind,
      resourcePrefix: `/${spec.storagePrefix}`,
      attributesOf: attributesOf(spec),
      codec: spec.codec,
      clock: {
        monotonicMs: () => this.clock.monotonicMs(),
        endOfTurn: (task) => void setImmediate(task),
      },
    });
    this.storage = storage;
    this.cluster = cluster;
    const random = new SeededRandom(7n);
    this.parts = { storage: this.storage, clock: this.clock, random, collectsGarbage: true };
    const { main, subresources } = storagesOf(spec, this.parts);
    this.main = main as Required<RestStorage>;
    this.subresources = subresources;
    this.#namespace = spec.namespaced ? "default" : "";
  }

  ctx(namespace: string = this.#namespace): RequestContext {
    const signal = new AbortController().signal;
    return { user: ANONYMOUS, namespace, signal, warn: (text) => this.warnings.push(text) };
  }

  /** Lets time pass, for this process and for the store. */
  advance(ms: number): void {
    this.clock.advance(ms);
    this.cluster.advance(ms);
  }

  /** How many keys the store has. */
  async count(): Promise<number> {
    return (await this.storage.stats()).objectCount;
  }

  object(metadata: object, fields: object = {}): KubeObject {
    const { group, version, kind } = this.spec.kind;
    const apiVersion = group === "" ? version : `${group}/${version}`;
    return { apiVersion, kind, metadata, ...fields };
  }

  create(object: KubeObject, options: WriteOptions = WRITE): Promise<KubeObject> {
    return this.main.create(this.ctx(), object, this.admit, options);
  }

  async get(name: string): Promise<KubeObject> {
    return (await this.main.get(this.ctx(), name, { resourceVersion: "" })).object();
  }

  /** PUT of an object, at the resource or a subresource. */
  async put(
    object: KubeObject,
    options: WriteOptions = WRITE,
    storage: RestStorage = this.main,
  ): Promise<KubeObject> {
    const { uid, name = "" } = object.metadata;
    const updated: UpdatedObject = {
      ...(uid === undefined ? {} : { preconditions: { uid } }),
      make: async () => object,
    };
    const ctx = this.ctx();
    return (await storage.update!(ctx, name, updated, this.admit, this.admit, false, options))
      .object;
  }

  /** Applies a function to the present object, as a patch does. */
  async patch(name: string, change: (object: KubeObject) => KubeObject, storage = this.main) {
    const updated: UpdatedObject = { make: async (_ctx, old) => change(old!) };
    const ctx = this.ctx();
    return (await storage.update(ctx, name, updated, this.admit, this.admit, false, WRITE)).object;
  }

  delete(name: string, options: RestDeleteOptions = DELETE) {
    return this.main.delete(this.ctx(), name, this.admit, options);
  }

  list(predicate: Partial<RestListOptions["predicate"]> = {}, namespace = this.#namespace) {
    return this.main.list(this.ctx(namespace), listOptions(predicate));
  }
}

/** The ApiError that the call rejects with. */
export async function failure(
  call: Promise<unknown> | (() => Promise<unknown>),
): Promise<ApiError> {
  try {
    await (typeof call === "function" ? call() : call);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error("the call succeeded");
}
