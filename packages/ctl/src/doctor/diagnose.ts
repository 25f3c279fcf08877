/** All checks, worst findings first. */
import { checkCertificates } from "./check-certificates.ts";
import {
  checkAlarms,
  checkElections,
  checkLag,
  checkLeader,
  checkMembership,
  checkOneCluster,
  checkPeers,
  checkReachable,
  checkVersions,
} from "./check-cluster.ts";
import { checkClocks, checkDisks, checkFiles, checkQuota, checkSpace } from "./check-resources.ts";
import { checkSettings } from "./check-settings.ts";
import type { Finding } from "./finding.ts";
import type { ClusterView } from "./view.ts";

const checks: readonly ((view: ClusterView) => Finding[])[] = [
  checkReachable,
  checkOneCluster,
  checkLeader,
  checkAlarms,
  checkCertificates,
  checkPeers,
  checkMembership,
  checkVersions,
  checkSettings,
  checkLag,
  checkElections,
  checkQuota,
  checkSpace,
  checkDisks,
  checkClocks,
  checkFiles,
];

/** What is wrong with the cluster: errors, then warnings, each in the order of the checks. */
export function diagnose(view: ClusterView): Finding[] {
  const found = checks.flatMap((check) => check(view));
  return [...found.filter(({ severity }) => severity === "error"), ...found.filter(({ severity }) => severity === "warning")];
}
