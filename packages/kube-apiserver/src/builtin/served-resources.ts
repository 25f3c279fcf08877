/** The endpoints of a resource: its own, and those of its subresources. */

import { sha256 } from "@noble/hashes/sha2.js";
import {
  type GroupVersionKind,
  type KindSource,
  type KubeObject,
  type ResourceParts,
  type ResourceSpec,
  type RestStorage,
  type ServedResource,
  type SpecStorages,
  storeOf,
  subresourceStoreOf,
} from "@quorate/kube-storage";
import { fromUtf8, toBase64 } from "@quorate/proto";
import { ScaleStore } from "./scale.ts";

const SCALE: GroupVersionKind = { group: "autoscaling", version: "v1", kind: "Scale" };

/** What the endpoints need besides the resource's declaration. */
export interface Serving {
  /** Of the kind that clients see. */
  readonly source: KindSource;
  /** Of the kinds of subresources, such as autoscaling/v1 Scale; undefined where none is known. */
  subresourceSource(kind: GroupVersionKind): KindSource | undefined;
  /** In which objects are stored; absent: the resource's own. */
  readonly storedKind?: GroupVersionKind;
  /** Built-in kinds take strategic merge patches. */
  readonly strategicMerge: boolean;
}

function kindOf(spec: ResourceSpec, subresource: string): GroupVersionKind {
  return subresource === "scale" ? SCALE : (spec.servedKind ?? spec.kind);
}

function served(
  spec: ResourceSpec,
  serving: Serving,
  subresource: string,
  storage: RestStorage,
): ServedResource {
  const kind = kindOf(spec, subresource);
  const parent = spec.servedKind ?? spec.kind;
  const own = kind !== SCALE;
  const source = own ? serving.source : (serving.subresourceSource(kind) ?? serving.source);
  return {
    group: parent.group,
    version: parent.version,
    resource: spec.resource,
    subresource,
    kind,
    singular: subresource === "" ? spec.singular : "",
    shortNames: subresource === "" ? spec.shortNames : [],
    categories: subresource === "" ? spec.categories : [],
    namespaced: spec.namespaced,
    storage,
    table: own ? spec.table : undefined,
    get schema() {
      return source.schema;
    },
    resetFields: (subresource === "status" ? spec.statusStrategy : spec.strategy)?.resetFields,
    strategicMerge: serving.strategicMerge,
    storageVersionHash:
      subresource === "" ? storageVersionHash(serving.storedKind ?? spec.kind) : "",
    decode: source.decode,
    convert: async (objects: readonly KubeObject[]) => objects,
    protobuf: source.protobuf,
    deprecationWarning: undefined,
  };
}

/** The endpoints of a resource with one version: the main one first. */
export function servedResourcesOf(
  spec: ResourceSpec,
  serving: Serving,
  parts: ResourceParts,
): ServedResource[] {
  const { main, subresources } = storagesOf(spec, parts);
  return [
    served(spec, serving, "", main),
    ...Object.entries(subresources).map(([name, storage]) => served(spec, serving, name, storage)),
  ];
}

/** Builds the storages of a resource from its declaration. */
export function storagesOf(spec: ResourceSpec, parts: ResourceParts): SpecStorages {
  const subresources: Record<string, RestStorage> = {};
  if (spec.statusStrategy !== undefined) {
    subresources["status"] = subresourceStoreOf(spec, parts, spec.statusStrategy);
  }
  if (spec.scale !== undefined) subresources["scale"] = new ScaleStore(spec, parts, spec.scale);
  const storages = { main: storeOf(spec, parts), subresources };
  return spec.customize?.(storages, parts) ?? storages;
}

/**
 * The hash of a resource's storage version in discovery (apiserver: storageversionhash.go). It
 * changes when objects are stored in another version.
 */
function storageVersionHash({ group, version, kind }: GroupVersionKind): string {
  return toBase64(sha256(fromUtf8(`${group}/${version}/${kind}`)).subarray(0, 8));
}
