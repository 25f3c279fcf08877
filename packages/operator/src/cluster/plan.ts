/**
 * The next step of a cluster: one bounded action, or a time to wait, from what was observed. No
 * I/O: whoever does the step may be killed before or after it, and the next look decides anew.
 *
 *     paused, or deleted           nothing
 *     shared objects missing       certificates, services, disruption budget
 *     a restore was ordered        plan-restore.ts
 *     no member is wanted          end the pods; claims stay, and with them the cluster
 *     a quorum is lost             plan-recovery.ts
 *     a pod is missing             start it on its claim, in the mode that the claim asks for
 *     a member is gone for good    remove it, so that another one takes its place
 *     a learner                    promote it, as soon as it has caught up
 *     too few, too many members    add a learner; remove a member, never the leader
 *     a pod of an older template   restart it; the leader last
 *     a claim is too small         let it grow
 *
 * At most one change of the membership is under way: while there is a learner, nothing is added or
 * removed but that learner.
 */
import { quantityNumber } from "@quorate/kube-storage";
import { annotationOf } from "../base/kube.ts";
import { hasLostDisk, isWell, leaderOf, newClaimOf, votersOf } from "./facts.ts";
import {
  MEMBER_ID,
  memberPod,
  monitorOf,
  PAUSE,
  peerUrl,
  SEED,
  STARTED,
  sharedObjects,
  templateHash,
} from "./objects.ts";
import {
  byOrdinal,
  type ClaimView,
  type MemberView,
  type Observed,
  type PodMode,
  type PodView,
} from "./observed.ts";
import { certificateStep } from "./plan-certificates.ts";
import { lostQuorumStep, recoveringStep } from "./plan-recovery.ts";
import { restoreStep } from "./plan-restore.ts";
import { create, hasFields, patch, type Rules, remove, type Step, wait } from "./step.ts";

/** While something is under way. */
const SOON_MS = 1000;
/** While all is well: changes arrive by watches, and members are asked so often. */
export const LATER_MS = 10_000;

/** The next step. The reason of the last one, where all is as wanted, is "AsWanted". */
export function plan(observed: Observed, rules: Rules): Step {
  const { cluster } = observed;
  if (cluster.metadata.deletionTimestamp !== undefined)
    return wait(LATER_MS, "Deleted", "the cluster is being deleted");
  if (annotationOf(cluster, PAUSE) !== undefined)
    return wait(LATER_MS, "Paused", `the annotation ${PAUSE} is set`);
  return (
    certificateStep(observed, rules) ??
    sharedStep(observed) ??
    restoreStep(observed) ??
    asleepStep(observed) ??
    recoveringStep(observed) ??
    seedStep(observed) ??
    markStep(observed) ??
    podStep(observed) ??
    lostQuorumStep(observed) ??
    quorumStep(observed) ??
    cleanupStep(observed) ??
    replaceStep(observed) ??
    learnerStep(observed) ??
    growStep(observed) ??
    shrinkStep(observed) ??
    upgradeStep(observed) ??
    usersStep(observed) ??
    storageStep(observed) ??
    wait(LATER_MS, "AsWanted", "all members are ready and as wanted")
  );
}

function sharedStep({ cluster, shared, served }: Observed): Step | undefined {
  const monitors = served.has("PodMonitor") ? [monitorOf(cluster)] : [];
  for (const wanted of [...sharedObjects(cluster), ...monitors]) {
    const { kind, metadata } = wanted;
    const found = shared.get(`${kind}/${metadata.name}`);
    if (found === undefined)
      return create(wanted, "Created", `${kind} ${metadata.name} was not there`);
    if (kind === "PodMonitor" && !hasFields(found.metadata.labels, metadata.labels)) {
      const fields = { metadata: { labels: metadata.labels } };
      return patch(kind, metadata.name, fields, "Changed", "its labels have changed");
    }
    if (kind !== "PodDisruptionBudget") continue;
    const [now, then] = [found.spec, wanted.spec] as { minAvailable?: number }[];
    if (now!.minAvailable !== then!.minAvailable)
      return patch(kind, metadata.name, { spec: then! }, "Changed", "the size has changed");
  }
  return undefined;
}

/** Ends all pods where no member is wanted. */
function asleepStep({ cluster, pods }: Observed): Step | undefined {
  if (cluster.spec!.size > 0) return undefined;
  const pod = [...pods.values()].find(({ isTerminating }) => !isTerminating);
  if (pod !== undefined) return remove("Pod", pod, "Asleep", "no member is wanted");
  if (pods.size > 0) return wait(SOON_MS, "Asleep", "the last pods end");
  return wait(LATER_MS, "AsWanted", "no member runs, and their data are kept");
}

/** The first claim of a cluster that has not begun. */
function seedStep(observed: Observed): Step | undefined {
  const { cluster, claims } = observed;
  if (cluster.status?.clusterID || claims.size > 0) return undefined;
  const claim = newClaimOf(observed, { [SEED]: "true" });
  return create(claim, "Bootstrap", "the first member");
}

/** Notes on claims which members were added for them, and which of these have started. */
function markStep({ claims, members = [] }: Observed): Step | undefined {
  for (const { id, pod, hasStarted } of members) {
    const claim = claims.get(pod);
    if (claim === undefined || claim.isTerminating) continue;
    const isOther = claim.memberId !== undefined && claim.memberId !== id;
    if (isOther || (claim.memberId === id && claim.hasStarted === hasStarted)) continue;
    if (claim.memberId === id && !hasStarted) continue;
    const marks = { [MEMBER_ID]: id, ...(hasStarted ? { [STARTED]: "true" } : {}) };
    const fields = { metadata: { annotations: marks } };
    return patch("PersistentVolumeClaim", pod, fields, "Noted", `${pod} is member ${id}`);
  }
  return undefined;
}

/** In which mode the pod of a claim starts; undefined where it is not to start. */
function modeOf(claim: ClaimView, { cluster, members }: Observed): PodMode | undefined {
  if (claim.isTerminating || claim.isLost) return undefined;
  if (claim.memberId !== undefined) {
    const isMember = members?.some(({ id }) => id === claim.memberId) ?? true;
    if (!isMember) return undefined;
    return claim.hasStarted ? "run" : members === undefined ? undefined : "join";
  }
  return claim.isSeed && !cluster.status?.clusterID ? "new" : undefined;
}

/** Starts pods that are missing, and one that was cut short before it had any data. */
function podStep(observed: Observed): Step | undefined {
  const { cluster, pods, members = [] } = observed;
  for (const claim of [...observed.claims.values()].sort(byOrdinal)) {
    const pod = pods.get(claim.name);
    if (pod?.hasLostData && !pod.isTerminating && !claim.hasStarted)
      return remove("Pod", pod, "Restarted", `${pod.name} ended before it had data`);
    const mode = modeOf(claim, observed);
    if (pod !== undefined || mode === undefined) continue;
    const others = members.map((one) => one.pod);
    const object = memberPod(cluster, claim, mode, others);
    return create(object, "Started", `${claim.name} starts (${mode})`);
  }
  return undefined;
}

/** Without a quorum nothing below is decided. */
function quorumStep({ members, cluster }: Observed): Step | undefined {
  if (members !== undefined) return undefined;
  return cluster.status?.clusterID
    ? wait(SOON_MS, "NoQuorum", "no quorum of the members responds")
    : wait(SOON_MS, "Bootstrap", "the first member starts");
}

/** Removes what members that have left the cluster had. */
function cleanupStep({ pods, claims, members = [] }: Observed): Step | undefined {
  const ids = new Set(members.map(({ id }) => id));
  const names = new Set(members.map(({ pod }) => pod));
  for (const pod of pods.values()) {
    const claim = claims.get(pod.name);
    const isOld = claim?.memberId !== undefined && !ids.has(claim.memberId);
    if (!pod.isTerminating && (isOld || (claim === undefined && !names.has(pod.name))))
      return remove("Pod", pod, "Removed", `${pod.name} has left the cluster`);
  }
  for (const claim of claims.values()) {
    if (claim.isTerminating || claim.memberId === undefined || ids.has(claim.memberId)) continue;
    if (pods.has(claim.name)) continue;
    const why = `${claim.name} has left the cluster`;
    return remove("PersistentVolumeClaim", claim, "Removed", why);
  }
  return undefined;
}

/** Whether a quorum is left when this member is removed. */
function canLose(member: MemberView, observed: Observed): boolean {
  if (member.isLearner) return true;
  const others = observed.members!.filter((one) => !one.isLearner && one.id !== member.id);
  const well = others.filter((one) => isWell(one, observed));
  return well.length > 0 && well.length >= Math.floor(others.length / 2) + 1;
}

/** Why a member is to be replaced, if it is. */
function whyDead(member: MemberView, observed: Observed): string | undefined {
  const { pods, cluster, nowMs } = observed;
  const { replaceAfterSeconds } = cluster.spec!;
  if (hasLostDisk(member.pod, observed)) return `the data of ${member.pod} are gone`;
  const pod = pods.get(member.pod);
  if (pod === undefined || pod.isReady) return undefined;
  if (nowMs - pod.sinceMs < replaceAfterSeconds * 1000) return undefined;
  // A new template that does not start is no reason to throw members away.
  if (isUpgrading(observed) && pod.template === templateHash(cluster)) return undefined;
  return `${member.pod} is not ready for ${replaceAfterSeconds} s`;
}

function replaceStep(observed: Observed): Step | undefined {
  const { members = [], pods, claims } = observed;
  const hasLearner = members.some(({ isLearner }) => isLearner);
  for (const member of members) {
    const why = whyDead(member, observed);
    if (why === undefined || (hasLearner && !member.isLearner)) continue;
    if (!canLose(member, observed))
      return wait(SOON_MS, "NotReplaced", `${why}, and its vote is needed for a quorum`);
    return { do: "remove-member", id: member.id, pod: member.pod, reason: "Replaced", why };
  }
  // A member whose disk is lost, and whose pod waits for it.
  for (const pod of pods.values()) {
    const isWaiting = !claims.has(pod.name) && !pod.isReady && !pod.isTerminating;
    if (isWaiting) return remove("Pod", pod, "Removed", `${pod.name} has no claim`);
  }
  return undefined;
}

function learnerStep(observed: Observed): Step | undefined {
  const { members = [], cluster, reached } = observed;
  const learner = members.find(({ isLearner }) => isLearner);
  if (learner === undefined) return undefined;
  const { id, pod } = learner;
  if (votersOf(observed).length >= cluster.spec!.size) {
    const why = "no further member is wanted";
    return { do: "remove-member", id, pod, reason: "Shrink", why };
  }
  if (!learner.hasStarted || !reached.has(pod))
    return wait(SOON_MS, "Joining", `${pod} joins as a learner`);
  return { do: "promote", id, pod, reason: "Promoted", why: `${pod} has caught up` };
}

/** Adds a learner: first its claim, then the member; its pod follows from both. */
function growStep(observed: Observed): Step | undefined {
  const { members = [], cluster, claims, pods } = observed;
  const { size } = cluster.spec!;
  const fresh = [...claims.values()].find(
    ({ memberId, restoreId, isTerminating }) =>
      memberId === undefined && restoreId === undefined && !isTerminating,
  );
  if (members.length >= size) {
    if (fresh === undefined || pods.has(fresh.name)) return undefined;
    return remove("PersistentVolumeClaim", fresh, "Removed", "no further member is wanted");
  }
  if (!members.every((one) => isWell(one, observed)))
    return wait(SOON_MS, "Growing", "a member is added once the others are ready");
  if (fresh === undefined) {
    const claim = newClaimOf(observed, {});
    return create(claim, "Growing", `member ${members.length + 1} of ${size}`);
  }
  const { name } = fresh;
  const url = peerUrl(cluster, name);
  const why = `${members.length} of ${size} members are there`;
  return { do: "add-learner", pod: name, peerUrl: url, reason: "Growing", why };
}

/** Hands leadership to another member that is well; waits where there is none. */
function handOver(from: MemberView, observed: Observed, why: string): Step {
  const { reached } = observed;
  const indexOf = ({ pod }: MemberView): number => reached.get(pod)?.index ?? 0;
  const [to] = votersOf(observed)
    .filter((one) => one.id !== from.id && isWell(one, observed))
    .sort((a, b) => indexOf(b) - indexOf(a) || byOrdinal({ name: a.pod }, { name: b.pod }));
  if (to === undefined) return wait(SOON_MS, "NoSuccessor", `${why}: no other member is ready`);
  return { do: "move-leader", from: from.pod, to: to.id, pod: to.pod, reason: "LeaderMoved", why };
}

function shrinkStep(observed: Observed): Step | undefined {
  const { members = [], cluster } = observed;
  const { size } = cluster.spec!;
  if (members.length <= size) return undefined;
  const leader = leaderOf(observed);
  const [victim] = members.toSorted(
    (a, b) =>
      Number(isWell(a, observed)) - Number(isWell(b, observed)) ||
      Number(a.id === leader?.id) - Number(b.id === leader?.id) ||
      byOrdinal({ name: b.pod }, { name: a.pod }),
  );
  if (victim === undefined) return undefined;
  if (leader === undefined || !canLose(victim, observed))
    return wait(SOON_MS, "Shrink", "a member is removed once the others are ready");
  const why = `${members.length} members are more than ${size}`;
  if (victim.id === leader.id) return handOver(victim, observed, why);
  return { do: "remove-member", id: victim.id, pod: victim.pod, reason: "Shrink", why };
}

/** Whether some pods have the wanted template, and some another one. */
function isUpgrading({ pods, cluster }: Observed): boolean {
  const wanted = templateHash(cluster);
  return [...pods.values()].some(({ template }) => template !== wanted);
}

/**
 * Restarts pods of an older template, one at a time, while all members are well. So an upgrade
 * stops by itself at the first member that does not come back.
 */
function upgradeStep(observed: Observed): Step | undefined {
  const { members = [], pods, cluster, nowMs } = observed;
  const wanted = templateHash(cluster);
  const old = [...pods.values()].filter(({ template }) => template !== wanted).sort(byOrdinal);
  const ill = members.filter((one) => !isWell(one, observed));
  const why = `${old.length} pods are of an older template`;
  if (ill.length > 0) {
    const broken = old.find((pod) => !pod.isTerminating && ill.some((one) => one.pod === pod.name));
    const isAlone = ill.length === 1 || members.length === 1;
    if (broken !== undefined && isAlone && !broken.isReady)
      return remove("Pod", broken, "Upgrading", `${why}, and ${broken.name} is not ready anyway`);
    const limitMs = cluster.spec!.replaceAfterSeconds * 1000;
    const isStuck = (pod: PodView | undefined): boolean =>
      pod !== undefined && !pod.isReady && nowMs - pod.sinceMs > limitMs;
    const stuck = ill.find((one) => isStuck(pods.get(one.pod)));
    if (stuck !== undefined && old.length > 0)
      return wait(SOON_MS, "UpgradeStopped", `${stuck.pod} is not ready; ${why}`);
    return wait(SOON_MS, "NotReady", `not ready: ${ill.map(({ pod }) => pod).join(", ")}`);
  }
  const leader = leaderOf(observed);
  const next = old.find(({ name }) => name !== leader?.pod) ?? old[0];
  if (next === undefined) return undefined;
  if (next.name === leader?.pod && members.length > 1) return handOver(leader, observed, why);
  return remove("Pod", next, "Upgrading", why);
}

function usersStep({ cluster, asksForUsers }: Observed): Step | undefined {
  const { users } = cluster.spec!;
  if (asksForUsers === undefined || asksForUsers === users) return undefined;
  const why = users ? "clients need a user" : "clients need no user";
  return { do: "ask-for-users", isWanted: users, reason: "Users", why };
}

/** Lets claims grow that are smaller than wanted. No disk becomes smaller. */
function storageStep({ cluster, claims, canGrow }: Observed): Step | undefined {
  const { size } = cluster.spec!.storage;
  const wanted = quantityNumber(size);
  const list = [...claims.values()].filter(({ isTerminating }) => !isTerminating).sort(byOrdinal);
  const large = list.find(({ requestedBytes }) => requestedBytes > wanted);
  if (large !== undefined)
    return wait(LATER_MS, "StorageNotShrunk", `${large.name} has more than ${size}`);
  const small = list.find(({ requestedBytes }) => requestedBytes < wanted);
  if (small !== undefined) {
    const { name, isBound } = small;
    if (!canGrow)
      return wait(LATER_MS, "StorageFixed", `the storage class of ${name} does not let it grow`);
    if (!isBound) return wait(SOON_MS, "StorageGrows", `${name} has no volume yet`);
    const fields = { spec: { resources: { requests: { storage: size } } } };
    return patch("PersistentVolumeClaim", name, fields, "StorageGrows", `${name} grows to ${size}`);
  }
  const growing = list.find(({ capacityBytes = wanted }) => capacityBytes < wanted);
  if (growing === undefined) return undefined;
  return wait(SOON_MS, "StorageGrows", `the volume of ${growing.name} grows to ${size}`);
}
