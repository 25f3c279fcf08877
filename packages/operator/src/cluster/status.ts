/** What the status of a QuorateCluster says, from an observation and the step that follows. */
import {
  type ClusterStatus,
  type Finding,
  type MemberStatus,
  timeText,
  withFindings,
} from "../base/kinds.ts";
import { highestNumber, isWell, leaderOf } from "./facts.ts";
import { selectorText } from "./objects.ts";
import type { Observed } from "./observed.ts";
import type { Step } from "./step.ts";

/** Reasons to wait that people have to look at. */
const TROUBLES = new Set([
  "NoQuorum",
  "QuorumLost",
  "RecoveryRefused",
  "AllDataLost",
  "NotReplaced",
  "UpgradeStopped",
  "RestoreFailed",
  "NoSuccessor",
  "NoCertManager",
  "StorageFixed",
  "StorageNotShrunk",
]);

function memberStatuses(observed: Observed): MemberStatus[] {
  const leader = leaderOf(observed);
  return observed.members!.map((member) => ({
    name: member.pod,
    id: member.id,
    role: member.isLearner ? "learner" : member.id === leader?.id ? "leader" : "voter",
    ready: isWell(member, observed),
    version: observed.reached.get(member.pod)?.version ?? "",
  }));
}

function findings(observed: Observed, { do: action, reason, why }: Step): Finding[] {
  const hasQuorum = observed.members !== undefined;
  const isWaiting = action === "wait";
  const isDone = isWaiting && reason === "AsWanted";
  const isTrouble = isWaiting && TROUBLES.has(reason);
  const of = (type: string, holds: boolean, word: string, message: string): Finding => ({
    type,
    status: holds ? "True" : "False",
    reason: word,
    message,
  });
  return [
    of("Ready", isDone, reason, why),
    of(
      "Available",
      hasQuorum,
      hasQuorum ? "Quorum" : "NoQuorum",
      hasQuorum ? "a quorum of the members responds" : "no quorum of the members responds",
    ),
    of("Degraded", isTrouble, isTrouble ? reason : "None", isTrouble ? why : ""),
  ];
}

/** The whole status. Of what cannot be seen without a quorum, the last known stays. */
export function statusOf(observed: Observed, step: Step): ClusterStatus {
  const { cluster, members, clusterId, leaves, nowMs } = observed;
  const before = cluster.status ?? {};
  const isReady = (name: string): boolean => observed.pods.get(name)?.isReady === true;
  const list =
    members === undefined
      ? (before.memberList ?? []).map((one) => ({ ...one, ready: one.ready && isReady(one.name) }))
      : memberStatuses(observed);
  const versions = list.map(({ version }) => version).filter((one) => one !== "");
  const ends = Object.values(leaves).map(({ untilMs }) => untilMs);
  const generation = cluster.metadata.generation ?? 0;
  return {
    ...before,
    observedGeneration: generation,
    // A member of before a restore may still respond until it has ended.
    ...(members === undefined || before.clusterID ? {} : { clusterID: clusterId }),
    members: list.length,
    readyMembers: list.filter(({ ready, role }) => ready && role !== "learner").length,
    leader: list.find(({ role }) => role === "leader")?.name ?? "",
    version: versions.sort((a, b) => a.localeCompare(b, "en", { numeric: true }))[0] ?? "",
    selector: selectorText(cluster.metadata.name, "member"),
    lastNumber: highestNumber(observed),
    memberList: list,
    ...(ends.length === 0 ? {} : { certificatesEnd: timeText(Math.min(...ends)) }),
    conditions: withFindings(before.conditions ?? [], findings(observed, step), generation, nowMs),
  };
}
