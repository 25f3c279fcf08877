/** The served resources, by who adds them: built-in kinds, programs, CustomResourceDefinitions. */
import {
  builtinKind,
  compareVersions,
  type GroupVersionKind,
  isBuiltIn,
  jsonCodec,
  type KindSource,
  kindSource,
  type RegistryDeps,
  type ResourceParts,
  type ResourceSpec,
  type ServedResource,
  type ServedResources,
  type StorageInterface,
  type StoreHooks,
} from "@quorate/kube-storage";
import { configMaps } from "../builtin/configmaps.ts";
import { coreEvents, groupEvents } from "../builtin/events.ts";
import { groupPriority } from "../builtin/group-priorities.ts";
import { leases } from "../builtin/leases.ts";
import { namespaces } from "../builtin/namespaces.ts";
import { plainKinds } from "../builtin/plain-kinds.ts";
import { secrets } from "../builtin/secrets.ts";
import { servedResourcesOf } from "../builtin/served-resources.ts";
import { serviceAccounts } from "../builtin/serviceaccounts.ts";

const keyOf = (group: string, version: string, resource: string, subresource: string): string =>
  `${group}/${version}/${resource}/${subresource}`;

export class ResourceTable implements ServedResources {
  readonly #byOwner = new Map<string, readonly ServedResource[]>();
  readonly #listeners = new Set<() => void>();
  #byKey = new Map<string, ServedResource>();
  #all: readonly ServedResource[] = [];
  #builtInGroups: ReadonlySet<string> = new Set();

  /**
   * Replaces what `owner` serves; an empty list removes it. A resource of an owner that came before
   * wins over a later one's with the same name.
   */
  set(owner: string, resources: readonly ServedResource[]): void {
    if (resources.length === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, resources);
    this.#byKey = new Map();
    for (const one of [...this.#byOwner.values()].flat()) {
      const key = keyOf(one.group, one.version, one.resource, one.subresource);
      if (!this.#byKey.has(key)) this.#byKey.set(key, one);
    }
    this.#all = [...this.#byKey.values()].sort(
      (a, b) =>
        groupPriority(b) - groupPriority(a) ||
        compareText(a.group, b.group) ||
        compareVersions(a.version, b.version) ||
        compareText(a.resource, b.resource) ||
        compareText(a.subresource, b.subresource),
    );
    this.#builtInGroups = new Set(this.#all.filter(isBuiltIn).map(({ group }) => group));
    for (const listener of this.#listeners) listener();
  }

  find(group: string, version: string, resource: string, subresource: string) {
    return this.#byKey.get(keyOf(group, version, resource, subresource));
  }

  all(): readonly ServedResource[] {
    return this.#all;
  }

  hasBuiltIns(group: string): boolean {
    return this.#builtInGroups.has(group);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * The declarations of the built-in kinds.
 * @param eventTtlSeconds how long events live
 * @param services gives Services their addresses
 */
export function builtinSpecs(eventTtlSeconds: number, services?: StoreHooks): ResourceSpec[] {
  const coreEvent = kindSource("", "v1", "Event");
  return [
    coreEvents(coreEvent, eventTtlSeconds),
    groupEvents(coreEvent, eventTtlSeconds),
    namespaces(kindSource("", "v1", "Namespace")),
    configMaps(kindSource("", "v1", "ConfigMap")),
    secrets(kindSource("", "v1", "Secret")),
    serviceAccounts(kindSource("", "v1", "ServiceAccount")),
    leases(kindSource("coordination.k8s.io", "v1", "Lease")),
    ...plainKinds(({ group, version, kind }) => kindSource(group, version, kind), services),
  ];
}

/** The endpoints of a built-in kind over its storage. */
export function builtinServed(
  spec: ResourceSpec,
  storage: StorageInterface,
  deps: RegistryDeps,
): ServedResource[] {
  const { group, version, kind } = spec.servedKind ?? spec.kind;
  const subresourceSource = (other: GroupVersionKind): KindSource | undefined => builtinKind(other);
  return servedResourcesOf(
    spec,
    {
      source: kindSource(group, version, kind),
      subresourceSource,
      strategicMerge: true,
    },
    { ...deps, storage },
  );
}

/** The endpoints of a resource that a program declares. */
export function typedServed(
  spec: ResourceSpec,
  source: KindSource,
  parts: ResourceParts,
): ServedResource[] {
  return servedResourcesOf(
    spec,
    {
      source,
      subresourceSource: (other) => builtinKind(other),
      strategicMerge: false,
    },
    parts,
  );
}

/** The same resource, whose objects are written as JSON; protobuf that is there is still read. */
export function storedAsJson(spec: ResourceSpec): ResourceSpec {
  const { codec } = spec;
  return { ...spec, codec: { encode: jsonCodec.encode, decode: (bytes) => codec.decode(bytes) } };
}
