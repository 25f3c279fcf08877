/** The kinds that every server has: their declarations, storages and endpoints. */
import { builtinKind, mustBuiltinKind } from "../codec/builtin-kind.ts";
import type { GroupVersionKind } from "../meta/kinds.ts";
import { configMaps } from "../registry/builtin/configmaps.ts";
import { namespaces } from "../registry/builtin/namespaces.ts";
import type { KindSource } from "../registry/kind-source.ts";
import type { RegistryDeps } from "../registry/resource-parts.ts";
import type { ResourceSpec } from "../registry/resource-spec.ts";
import { servedResourcesOf } from "../registry/served-resources.ts";
import type { ServedResource } from "../rest/served-resource.ts";
import type { ResourceStorages } from "./resource-storages.ts";

const core = (kind: string): GroupVersionKind => ({ group: "", version: "v1", kind });

/** What the tables know about a built-in kind, in the registry's form. */
export function kindSourceOf(kind: GroupVersionKind): KindSource {
  const builtin = mustBuiltinKind(kind);
  return {
    kind,
    codec: builtin.storageCodec,
    get schema() {
      return builtin.schema;
    },
    decode: (value) => builtin.decode(value),
    protobuf: builtin.protobuf,
  };
}

/** The declarations of the built-in kinds. */
export function builtinSpecs(): ResourceSpec[] {
  return [namespaces(kindSourceOf(core("Namespace"))), configMaps(kindSourceOf(core("ConfigMap")))];
}

/** The endpoints of a declared resource, over a new storage. */
export function servedOver(
  spec: ResourceSpec,
  storages: ResourceStorages,
  deps: RegistryDeps,
): ServedResource[] {
  const source = kindSourceOf(spec.kind);
  return servedResourcesOf(
    spec,
    {
      source,
      subresourceSource: (kind) => (builtinKind(kind) === undefined ? undefined : kindSourceOf(kind)),
      storageVersionHash: storageVersionHash(spec.kind),
      strategicMerge: true,
    },
    { ...deps, storage: storages.storageFor(spec) },
  );
}
