/**
 * The declaration of a resource, from which its storage, registry store and endpoints are made,
 * what they are made of besides, and the keys of its objects (apiserver:
 * registry/generic/registry/store.go, NamespaceKeyFunc):
 *
 *     /configmaps/default/app      namespaced
 *     /namespaces/default          not namespaced
 */
import type { Clock, Random } from "@quorate/host";
import { quoteText as goQuote } from "@quorate/proto";
import type { GroupVersionKind } from "../meta/kinds.ts";
import { isPathSegmentName, type NameRule } from "../meta/names.ts";
import type { KubeObject } from "../meta/object.ts";
import { badRequest } from "../meta/status.ts";
import type { RestStorage, TableConvertor } from "../rest/interfaces.ts";
import type { DecodedObject, ServedResource } from "../rest/served-resource.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import type { ObjectCodec } from "../storage/codec.ts";
import type { StorageInterface } from "../storage/interface.ts";
import type { StoreHooks, Strategy } from "./strategy.ts";

/** Where /scale finds its figures in an object: paths such as ".spec.replicas". */
export interface ScalePaths {
  readonly specReplicas: string;
  readonly statusReplicas: string;
  /** The text of a label selector; absent where the kind has none. */
  readonly labelSelector?: string | undefined;
}

/** The storages of a resource and of its subresources. */
export interface SpecStorages {
  readonly main: RestStorage;
  /** By name: "status", "scale", "finalize", "token". */
  readonly subresources: Readonly<Record<string, RestStorage>>;
}

export interface ResourceSpec {
  /** Of the objects that the store works with; its errors name it. */
  readonly kind: GroupVersionKind;
  /** As clients see it, where that is another one: `customize` converts. */
  readonly servedKind?: GroupVersionKind;
  /** The plural. */
  readonly resource: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Below the root, without slashes at its ends: "configmaps", "example.org/widgets". */
  readonly storagePrefix: string;
  readonly codec: ObjectCodec;
  /**
   * Each call for a storage opens another one: a changed definition of a custom resource reads the
   * same objects in another way.
   */
  readonly ownStorage?: boolean;
  readonly schema: ObjectSchema | undefined;
  readonly strategy: Strategy;
  /** Present where the resource has /status. */
  readonly statusStrategy?: Strategy | undefined;
  readonly hooks?: StoreHooks;
  readonly table: TableConvertor;
  /** Selectable fields besides metadata.name and metadata.namespace. */
  readonly selectableFields?: (object: KubeObject) => Readonly<Record<string, string>>;
  /**
   * The names of those fields. Selectors with others are refused: with "field label not supported",
   * or, where this is absent, with the text of kinds that select by metadata only.
   */
  readonly selectableFieldNames?: readonly string[];
  /** Objects live this long after their last write; absent: until deleted. */
  readonly ttlSeconds?: (object: KubeObject) => number;
  /** Absent: DNS subdomains. */
  readonly nameRule?: NameRule | undefined;
  /** The response to a deletion is the object, not a Status. */
  readonly returnsDeletedObject?: boolean;
  /** A further condition for deleting an object whose last finalizer an update removes. */
  readonly deletesDuringUpdate?: (object: KubeObject, old: KubeObject) => boolean;
  /** What happens to dependents by default; "unsupported": no finalizer is ever set for them. */
  readonly garbageCollection?: "background" | "orphan" | "unsupported";
  /** Present where the resource has /scale. */
  readonly scale?: ScalePaths | undefined;
  /** Changes the storages of the resource, or adds subresources. */
  readonly customize?: (storages: SpecStorages, parts: ResourceParts) => SpecStorages;
}

/** Makes the storage of a resource: a Cacher over an EtcdStore. Held until the resource goes. */
export interface StorageFactory {
  storageFor(spec: ResourceSpec): StorageInterface;
}

/** What most built-in resources have in common; each may be given. */
type Usual = "singular" | "shortNames" | "categories" | "namespaced" | "storagePrefix";
/** What the kind decides. */
type OfKind = "kind" | "codec" | "schema" | "resource";

/**
 * The declaration of a built-in resource: what follows from its kind and its plural. A namespaced
 * resource without short names, stored below its plural, unless `own` says otherwise. The schema is
 * made when it is first read: a start needs few of them.
 * @param resource the plural
 */
export function builtinSpec(
  source: KindSource,
  resource: string,
  own: Omit<ResourceSpec, Usual | OfKind> & Partial<Pick<ResourceSpec, Usual>>,
): ResourceSpec {
  return {
    kind: source.kind,
    resource,
    singular: resource.slice(0, -1),
    shortNames: [],
    categories: [],
    namespaced: true,
    storagePrefix: resource,
    codec: source.codec,
    ...own,
    get schema() {
      return source.schema;
    },
  };
}

/** The prefix of all keys of the resource in a namespace; "" for all namespaces. */
export function keyRootOf(spec: ResourceSpec, namespace: string): string {
  const root = `/${spec.storagePrefix}/`;
  return spec.namespaced && namespace !== "" ? `${root}${namespace}/` : root;
}

/** The key of one object. Throws ApiError 400 for a name that cannot be part of a key. */
export function keyOf(spec: ResourceSpec, namespace: string, name: string): string {
  if (spec.namespaced && namespace === "") throw badRequest("Namespace parameter required.");
  if (name === "") throw badRequest("Name parameter required.");
  const texts = isPathSegmentName(name);
  if (texts.length > 0) {
    throw badRequest(`Name parameter invalid: ${goQuote(name)}: ${texts.join(";")}`);
  }
  return keyRootOf(spec, namespace) + name;
}

/** What the tables of built-in kinds know about one kind. */
export interface KindSource {
  readonly kind: GroupVersionKind;
  /** How objects are stored. */
  readonly codec: ObjectCodec;
  readonly schema: ObjectSchema | undefined;
  /** Reads a client's JSON value: prunes, defaults, finds unknown fields. Throws ApiError. */
  decode(value: unknown): DecodedObject;
  readonly protobuf: ServedResource["protobuf"];
}

/** What the stores of all resources share. */
export interface RegistryDeps {
  /** Wall time, for creationTimestamp, deletionTimestamp and ages. */
  readonly clock: Clock;
  /** For uids and generated names: seeded from the system's randomness. */
  readonly random: Random;
  /** A garbage collector runs: deletions may set its finalizers. */
  readonly collectsGarbage: boolean;
}

/** What the stores of one resource are built from, besides its declaration. */
export interface ResourceParts extends RegistryDeps {
  readonly storage: StorageInterface;
}

/** What each operation of a registry store works with. */
export interface StoreContext {
  readonly spec: ResourceSpec;
  readonly parts: ResourceParts;
  /** As errors name it. */
  readonly resource: { readonly group: string; readonly resource: string };
  /** The rules of updates: the resource's own, or those of a subresource. */
  readonly updateStrategy: Strategy;
  /** None around subresources. */
  readonly hooks: StoreHooks;
}
