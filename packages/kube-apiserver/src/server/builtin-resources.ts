/** The kinds that every server has: their declarations, storages and endpoints. */

import type {
  GroupVersionKind,
  KindSource,
  RegistryDeps,
  ResourceParts,
  ResourceSpec,
  ServedResource,
  StorageInterface,
} from "@quorate/kube-storage";
import { builtinKind, jsonCodec, kindSource } from "@quorate/kube-storage";
import { configMaps } from "../builtin/configmaps.ts";
import { coreEvents, groupEvents } from "../builtin/events.ts";
import { leases } from "../builtin/leases.ts";
import { namespaces } from "../builtin/namespaces.ts";
import { plainKinds } from "../builtin/plain-kinds.ts";
import { secrets } from "../builtin/secrets.ts";
import { servedResourcesOf } from "../builtin/served-resources.ts";
import { serviceAccounts } from "../builtin/serviceaccounts.ts";
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
