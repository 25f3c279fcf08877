/**
 * A lost quorum: so many members have lost their data that the others can never decide again. The
 * cluster then goes on with the data of one survivor. What others had acknowledged and it has not
 * is lost, so all of this must hold:
 *
 *   - it is wanted: `recovery: auto`, or the annotation quorate.dev/recover-quorum;
 *   - of each member it is known that it responds, or that its disk is gone. One that is only away
 *     may have more, and may still serve clients;
 *   - one survivor has both the highest term and the highest committed index.
 *
 * The choice is written to the status first. From then on: all other pods and claims go; the
 * survivor starts with --force-new-cluster, and once it is a cluster of one, without.
 */
import { survivorOf } from "@quorate/backup";
import { annotationOf } from "../base/kube.ts";
import { hasLostDisk, nextHistory } from "./facts.ts";
import { memberPod, RECOVER } from "./objects.ts";
import type { Observed } from "./observed.ts";
import { create, patchStatus, remove, type Step, wait } from "./step.ts";

const SOON_MS = 1000;

/** The step of a recovery that is under way. */
export function recoveringStep(observed: Observed): Step | undefined {
  const recovery = observed.cluster.status?.recovery ?? undefined;
  if (recovery === undefined) return undefined;
  return continued(observed, recovery.survivor, recovery.forced);
}

/** Decides for a recovery, or says why there is none. */
export function lostQuorumStep(observed: Observed): Step | undefined {
  const { cluster, members } = observed;
  if (members !== undefined || !cluster.status?.clusterID) return undefined;
  const known = (cluster.status.memberList ?? []).filter(({ role }) => role !== "learner");
  const lost = known.filter(({ name }) => hasLostDisk(name, observed));
  if (known.length === 0 || known.length - lost.length >= Math.floor(known.length / 2) + 1)
    return undefined;
  const names = lost.map(({ name }) => name).join(", ");
  if (cluster.spec!.recovery === "manual" && annotationOf(cluster, RECOVER) === undefined) {
    const why = `the data of ${names} are gone. Set the annotation ${RECOVER} to go on without`;
    return wait(SOON_MS, "QuorumLost", why);
  }
  const left = known.filter(({ name }) => !hasLostDisk(name, observed));
  const away = left.filter(({ name }) => !observed.reached.has(name));
  if (left.length === 0)
    return wait(SOON_MS, "AllDataLost", "no member has data left: restore a backup");
  if (away.length > 0) {
    const who = away.map(({ name }) => name).join(", ");
    const why = `${who} may have more than the members that respond; their disks are not gone`;
    return wait(SOON_MS, "RecoveryRefused", why);
  }
  const survivor = survivorOf(left.map(({ name }) => ({ name, ...observed.reached.get(name)! })));
  if (survivor === undefined)
    return wait(SOON_MS, "RecoveryRefused", "one member has the highest term, another the index");
  const why = `the data of ${names} are gone: the cluster goes on with those of ${survivor.name}`;
  return decided(observed, { survivor: survivor.name, forced: false }, "QuorumRecovery", why);
}

function decided(
  { cluster }: Observed,
  recovery: { readonly survivor: string; readonly forced: boolean },
  reason: string,
  why: string,
): Step {
  return patchStatus("QuorateCluster", cluster.metadata.name, { recovery }, reason, why);
}

function continued(observed: Observed, survivor: string, wasForced: boolean): Step {
  const { cluster, pods, claims, members } = observed;
  for (const pod of pods.values()) {
    if (pod.name !== survivor && !pod.isTerminating)
      return remove("Pod", pod, "QuorumRecovery", `the cluster goes on with ${survivor}`);
  }
  for (const claim of claims.values()) {
    if (claim.name !== survivor && !claim.isTerminating)
      return remove("PersistentVolumeClaim", claim, "QuorumRecovery", "its member is gone");
  }
  if (claims.size > 1 || pods.size > 1)
    return wait(SOON_MS, "Recovering", "pods and claims of lost members go");
  const pod = pods.get(survivor);
  const mode = wasForced ? "run" : "force";
  if (pod === undefined) {
    const claim = { name: survivor, zone: claims.get(survivor)?.zone };
    const object = memberPod(cluster, claim, mode, []);
    return create(object, "QuorumRecovery", `${survivor} starts (${mode})`);
  }
  if (pod.isTerminating) return wait(SOON_MS, "Recovering", `${survivor} ends`);
  if (pod.mode !== mode)
    return remove("Pod", pod, "QuorumRecovery", `${survivor} starts again (${mode})`);
  if (wasForced) {
    const status = { recovery: null, history: nextHistory(cluster) };
    const why = "the cluster decides again";
    return patchStatus("QuorateCluster", cluster.metadata.name, status, "QuorumRecovered", why);
  }
  const [only, ...rest] = members ?? [];
  if (only?.pod === survivor && rest.length === 0 && pod.isReady)
    return decided(observed, { survivor, forced: true }, "QuorumRecovery", "it is alone now");
  return wait(SOON_MS, "Recovering", `${survivor} becomes a cluster of one`);
}
