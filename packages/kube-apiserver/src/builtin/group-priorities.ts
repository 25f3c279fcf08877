/**
 * The order of groups in discovery and that of their versions, as APIServices have it (kubernetes:
 * pkg/controlplane/apiserver/aggregator.go): the highest priority first, then by their names.
 */
import type { GroupVersion } from "@quorate/kube-storage";

const PRIORITIES: Readonly<Record<string, number>> = {
  "": 18_000,
  "apiregistration.k8s.io": 20_000,
  apps: 17_800,
  "events.k8s.io": 17_750,
  "authentication.k8s.io": 17_700,
  "authorization.k8s.io": 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  "certificates.k8s.io": 17_300,
  "networking.k8s.io": 17_200,
  policy: 17_100,
  "rbac.authorization.k8s.io": 17_000,
  "storage.k8s.io": 16_800,
  "admissionregistration.k8s.io": 16_700,
  "apiextensions.k8s.io": 16_700,
  "scheduling.k8s.io": 16_600,
  "coordination.k8s.io": 16_500,
  "node.k8s.io": 16_300,
  "discovery.k8s.io": 16_200,
  "resource.k8s.io": 16_200,
  "flowcontrol.apiserver.k8s.io": 16_100,
  "storagemigration.k8s.io": 15_800,
};
/** Of groups of custom resources, and of their versions. */
const OTHER = 1000;
const OTHER_VERSION = 100;
/** Of versions in the groups above. */
const VERSION = 15;
const VERSIONS: Readonly<Record<string, number>> = {
  "/v1": 1,
  "autoscaling/v2": 30,
  "flowcontrol.apiserver.k8s.io/v1": 21,
  "resource.k8s.io/v1": 21,
};

/** @param of its group is "" for the core group, which has a document of its own */
export function groupPriority({ group }: Pick<GroupVersion, "group">): number {
  return PRIORITIES[group] ?? OTHER;
}

export function versionPriority({ group, version }: GroupVersion): number {
  return PRIORITIES[group] === undefined
    ? OTHER_VERSION
    : (VERSIONS[`${group}/${version}`] ?? VERSION);
}
