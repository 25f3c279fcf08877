/** The kinds that every server has: their declarations, storages and endpoints. */
import { builtinKind, kindSource } from "../codec/builtin-kind.ts";
import type { GroupVersionKind } from "../meta/kinds.ts";
import { configMaps } from "../registry/builtin/configmaps.ts";
import { coreEvents, groupEvents } from "../registry/builtin/events.ts";
import { leases } from "../registry/builtin/leases.ts";
import { namespaces } from "../registry/builtin/namespaces.ts";
import { plainKinds } from "../registry/builtin/plain-kinds.ts";
import { secrets } from "../registry/builtin/secrets.ts";
import { serviceAccounts } from "../registry/builtin/serviceaccounts.ts";
import type { KindSource } from "../registry/kind-source.ts";
import type { RegistryDeps, ResourceParts } from "../registry/resource-parts.ts";
import type { ResourceSpec } from "../registry/resource-spec.ts";
import { servedResourcesOf } from "../registry/served-resources.ts";
import type { ServedResource } from "../rest/served-resource.ts";
import type { StorageInterface } from "../storage/interface.ts";
import { jsonCodec } from "../storage/json-codec.ts";
import { storageVersionHash } from "./storage-version-hash.ts";

/** The declarations of the built-in kinds. @param eventTtlSeconds how long events live */
export function builtinSpecs(eventTtlSeconds: number): ResourceSpec[] {
  const coreEvent = kindSource("", "v1", "Event");
  return [
    coreEvents(coreEvent, eventTtlSeconds),
    groupEvents(coreEvent, eventTtlSeconds),
    namespaces(kindSource("", "v1", "Namespace")),
    configMaps(kindSource("", "v1", "ConfigMap")),
    secrets(kindSource("", "v1", "Secret")),
    serviceAccounts(kindSource("", "v1", "ServiceAccount")),
    leases(kindSource("coordination.k8s.io", "v1", "Lease")),
    ...plainKinds(({ group, version, kind }) => kindSource(group, version, kind)),
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
      storageVersionHash: storageVersionHash(spec.kind),
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
      storageVersionHash: storageVersionHash(spec.kind),
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
