/** A server's resources over memory, with access control, for tests of policy and controllers. */
import type { Clock } from "@quorate/host";
import { SeededRandom, silentLogger } from "@quorate/host";
import type {
  GroupVersionKind,
  KindSource,
  KubeObject,
  RequestContext,
  ResourceSpec,
  RestStorage,
  ServedResource,
  ServedResources,
  UserInfo,
} from "@quorate/kube-storage";
import {
  attributesOf,
  DEFAULT_TABLE,
  isBuiltIn,
  kindSource,
  plainStrategy,
} from "@quorate/kube-storage";
import { MemoryCluster, memoryStorage } from "@quorate/kube-storage/testing";
import type { Admission } from "../../src/admission/admission.ts";
import { AdmissionChain, type AdmissionPlugin } from "../../src/admission/chain.ts";
import { configMaps } from "../../src/builtin/configmaps.ts";
import { namespaces } from "../../src/builtin/namespaces.ts";
import { servedResourcesOf } from "../../src/builtin/served-resources.ts";
import { LocalClient } from "../../src/informers/local-client.ts";
import { systemContext } from "../../src/informers/system-context.ts";

export const source = ({ group, version, kind }: GroupVersionKind): KindSource =>
  kindSource(group, version, kind);

/** A resource without rules of its own. */
export function plainResource(
  kind: GroupVersionKind,
  resource: string,
  namespaced: boolean,
): ResourceSpec {
  const { codec, schema } = source(kind);
  return {
    kind,
    resource,
    singular: resource.slice(0, -1),
    shortNames: [],
    categories: [],
    namespaced,
    storagePrefix: resource,
    codec,
    schema,
    strategy: plainStrategy({ kind, namespaced }),
    table: DEFAULT_TABLE,
  };
}

const core = (kind: string): GroupVersionKind => ({ group: "", version: "v1", kind });

export class World implements ServedResources {
  readonly cluster = new MemoryCluster();
  readonly clock: Clock;
  readonly random = new SeededRandom(1n);
  readonly logger = silentLogger;
  readonly plugins: AdmissionPlugin[] = [];
  readonly client: LocalClient;
  readonly #served: ServedResource[] = [];
  readonly #listeners = new Set<() => void>();

  constructor(clock: Clock) {
    this.clock = clock;
    this.client = new LocalClient(this, this.admission);
    this.add(namespaces(source(core("Namespace"))));
    this.add(configMaps(source(core("ConfigMap"))));
    this.add(plainResource(core("Secret"), "secrets", true));
    this.add(plainResource(core("ServiceAccount"), "serviceaccounts", true));
  }

  get admission(): Admission {
    return {
      mutate: (attributes) => new AdmissionChain(this.plugins).mutate(attributes),
      validate: (attributes) => new AdmissionChain(this.plugins).validate(attributes),
    };
  }

  /** Serves a resource that cannot be watched. */
  addUnwatched(spec: ResourceSpec): void {
    const [served] = this.#made(spec);
    const { storage } = served;
    const kept = { get: storage.get!.bind(storage), create: storage.create!.bind(storage) };
    this.serve({ ...served, storage: kept });
  }

  add(spec: ResourceSpec): void {
    this.serve(...this.#made(spec));
  }

  #made(spec: ResourceSpec): readonly ServedResource[] {
    const { storage } = memoryStorage({
      kind: spec.kind,
      resourcePrefix: `/${spec.storagePrefix}`,
      attributesOf: attributesOf(spec),
      codec: spec.codec,
      cluster: this.cluster,
      clock: this.clock,
    });
    const serving = {
      source: source(spec.kind),
      subresourceSource: () => undefined,
      storageVersionHash: "",
      strategicMerge: true,
    };
    const { clock, random } = this;
    const parts = { clock, random, collectsGarbage: true, storage };
    return servedResourcesOf(spec, serving, parts);
  }

  serve(...resources: readonly ServedResource[]): void {
    this.#served.push(...resources);
    for (const listener of this.#listeners) listener();
  }

  hasBuiltIns(group: string): boolean {
    return this.#served.some((one) => one.group === group && isBuiltIn(one));
  }

  remove(group: string, resource: string): void {
    const kept = this.#served.filter((one) => one.group !== group || one.resource !== resource);
    this.#served.splice(0, this.#served.length, ...kept);
    for (const listener of this.#listeners) listener();
  }

  find(group: string, version: string, resource: string, subresource: string) {
    return this.#served.find(
      (one) =>
        one.group === group &&
        one.version === version &&
        one.resource === resource &&
        one.subresource === subresource,
    );
  }

  all(): readonly ServedResource[] {
    return [...this.#served];
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  storage(group: string, resource: string, subresource = ""): RestStorage {
    return this.find(group, "v1", resource, subresource)!.storage;
  }

  /** Creates an object as a user does, without authorization. */
  create(user: UserInfo, resource: string, namespace: string, object: unknown, group = "") {
    const ctx = contextOf(user, namespace);
    return this.storage(group, resource).create!(ctx, object as KubeObject, async () => {}, {
      dryRun: false,
      fieldManager: "",
      fieldValidation: "Strict",
    });
  }

  namespace(name: string): Promise<KubeObject> {
    return this.create(MASTER, "namespaces", "", {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name },
    });
  }
}

export const MASTER: UserInfo = systemContext().user;

export function userOf(name: string, ...groups: readonly string[]): UserInfo {
  return { name, uid: "", groups: [...groups, "system:authenticated"], extra: {} };
}

export function contextOf(user: UserInfo, namespace: string): RequestContext {
  return { ...systemContext(namespace), user };
}
