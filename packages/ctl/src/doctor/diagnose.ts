/** Runs all checks; worst findings first. */
import { checkAlarms } from "./check-alarms.ts";
import { checkCertificates } from "./check-certificates.ts";
import {
  checkElections,
  checkEndpoints,
  checkLag,
  checkLeader,
  checkLogin,
  checkMembership,
  checkOneCluster,
  checkPeers,
  checkReachable,
  checkVersions,
} from "./check-cluster.ts";
import { checkClocks, checkDisks, checkFiles, checkQuota, checkSpace } from "./check-resources.ts";
import { checkReloads, checkSettings } from "./check-settings.ts";
import type { Finding } from "./finding.ts";
import type { ClusterView } from "./view.ts";

const checks: readonly ((view: ClusterView) => Finding[])[] = [
  checkReachable,
  checkOneCluster,
  checkLeader,
  checkAlarms,
  checkCertificates,
  checkReloads,
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

/** The findings: errors, then warnings, each in the order of the checks. */
export function diagnose(view: ClusterView): Finding[] {
  // What a proxy answers is some member's: it would count twice.
  const direct = { ...view, members: view.members.filter(({ isProxy }) => isProxy !== true) };
  const found = [
    ...checkLogin(view),
    ...checkEndpoints(view),
    ...checks.flatMap((check) => check(direct)),
  ];
  return eachCommandOnce([
    ...found.filter(({ severity }) => severity === "error"),
    ...found.filter(({ severity }) => severity === "warning"),
  ]);
}

/**
 * Leaves out commands of earlier findings: a compaction, for example, is for the whole cluster and
 * fails when repeated.
 */
function eachCommandOnce(findings: readonly Finding[]): Finding[] {
  const printed = new Set<string>();
  return findings.map((finding) => {
    const run = finding.run.filter((command) => !printed.has(command));
    for (const command of run) printed.add(command);
    const next =
      finding.run.length > run.length
        ? `${finding.next.replace(/:$/, "")} (see the command above)${run.length > 0 ? ":" : ""}`
        : finding.next;
    return { ...finding, next, run };
  });
}
