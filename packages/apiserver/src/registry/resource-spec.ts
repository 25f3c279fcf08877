/** The declaration of a resource, from which its storage, registry store and endpoints are made. */
import type { GroupVersionKind } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import type { TableConvertor } from "../rest/interfaces.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import type { ObjectCodec } from "../storage/codec.ts";
import type { StorageInterface } from "../storage/interface.ts";
import type { StoreHooks, Strategy } from "./strategy.ts";

export interface ResourceSpec {
  readonly kind: GroupVersionKind;
  /** The plural. */
  readonly resource: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Below the root, without slashes at its ends: "configmaps", "example.org/widgets". */
  readonly storagePrefix: string;
  readonly codec: ObjectCodec;
  readonly schema: ObjectSchema | undefined;
  readonly strategy: Strategy;
  /** Present where the resource has /status. */
  readonly statusStrategy?: Strategy;
  readonly hooks?: StoreHooks;
  readonly table: TableConvertor;
  /** Selectable fields besides metadata.name and metadata.namespace. */
  readonly selectableFields?: (object: KubeObject) => Readonly<Record<string, string>>;
  /** Objects live this long after their last write; absent: until deleted. */
  readonly ttlSeconds?: (object: KubeObject) => number;
}

/** Makes the storage of a resource: a Cacher over an EtcdStore. Held until the resource goes. */
export interface StorageFactory {
  storageFor(spec: ResourceSpec): StorageInterface;
}
