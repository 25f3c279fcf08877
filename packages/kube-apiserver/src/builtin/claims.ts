/** Where the data of a PersistentVolumeClaim comes from (kubernetes: api/persistentvolumeclaim). */
import type { KubeObject, Strategy } from "@quorate/kube-storage";
import { isAbsent, objectOf } from "./rules/rules.ts";

const SNAPSHOTS = "snapshot.storage.k8s.io";

/** A source in the older field that no program may fill the volume from is dropped. */
function isKnown(source: unknown): boolean {
  const { apiGroup = "", kind } = objectOf(source);
  if (apiGroup === SNAPSHOTS) return kind === "VolumeSnapshot";
  return (apiGroup ?? "") === "" && kind === "PersistentVolumeClaim";
}

/** Both fields have the same source, if one of them has one. */
function withSources(claim: KubeObject): KubeObject {
  const spec = objectOf(claim["spec"]);
  const { dataSource, dataSourceRef } = spec;
  if (isAbsent(dataSource) && isAbsent(dataSourceRef)) return claim;
  if (isAbsent(dataSourceRef)) {
    if (isKnown(dataSource)) {
      return { ...claim, spec: { ...spec, dataSourceRef: dataSource } };
    }
    const { dataSource: _, ...rest } = spec;
    return { ...claim, spec: rest };
  }
  const hasNamespace = (objectOf(dataSourceRef)["namespace"] ?? "") !== "";
  if (!isAbsent(dataSource) || hasNamespace) return claim;
  return { ...claim, spec: { ...spec, dataSource: dataSourceRef } };
}

export function claimStrategy(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForCreate: (ctx, object) => withSources(strategy.prepareForCreate(ctx, object)),
  };
}
