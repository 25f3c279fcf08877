/**
 * A restore, as a QuorateRestore ordered it by an annotation of the cluster. In place as well as
 * for a new cluster: a claim for a new first member is filled while the old members still serve;
 * only when that has succeeded do they go, with their data.
 *
 *     claim for the new first member --> pod that fills it --> noted on the claim
 *       --> old pods and claims go --> the cluster begins anew with that claim
 */
import { annotationOf } from "../base/kube.ts";
import { newClaimOf, nextHistory } from "./facts.ts";
import { FILLED, RESTORE, RESTORE_ID, SEED } from "./objects.ts";
import type { ClaimView, Observed } from "./observed.ts";
import { type RestoreOrder, restorePod } from "./pods-beside.ts";
import { create, patch, patchStatus, remove, type Step, wait } from "./step.ts";

const SOON_MS = 1000;

/** The order, where there is one that is not done. */
export function restoreOrderOf({ cluster }: Pick<Observed, "cluster">): RestoreOrder | undefined {
  const text = annotationOf(cluster, RESTORE);
  if (text === undefined) return undefined;
  const order = JSON.parse(text) as RestoreOrder;
  return order.id === cluster.status?.restored ? undefined : order;
}

/** The step of a restore that is under way. */
export function restoreStep(observed: Observed): Step | undefined {
  const { claims } = observed;
  const order = restoreOrderOf(observed);
  if (order === undefined) return leftOver(observed);
  const claim = [...claims.values()].find(({ restoreId }) => restoreId === order.id);
  if (claim === undefined) return newClaim(observed, order);
  return claim.isFilled ? switchOver(observed, claim, order) : fill(observed, claim, order);
}

function newClaim(observed: Observed, order: RestoreOrder): Step {
  const marks = { [SEED]: "true", [RESTORE_ID]: order.id };
  const claim = newClaimOf(observed, marks);
  return create(claim, "Restore", "a claim for the restored keys");
}

function fill(observed: Observed, claim: ClaimView, order: RestoreOrder): Step {
  const { cluster, restorePod: pod } = observed;
  if (pod === undefined)
    return create(restorePod(cluster, claim, order), "Restore", "the keys are restored");
  if (pod.phase === "Succeeded") {
    const marks = { metadata: { annotations: { [FILLED]: "true" } } };
    return patch("PersistentVolumeClaim", claim.name, marks, "Restore", "the keys are there");
  }
  if (pod.phase !== "Failed") return wait(SOON_MS, "Restoring", "the keys are being restored");
  const why = `the pod ${pod.name} failed: its log says why; delete it to try again`;
  return wait(SOON_MS, "RestoreFailed", why);
}

function switchOver(observed: Observed, claim: ClaimView, order: RestoreOrder): Step {
  const { cluster, pods, claims, restorePod: filler } = observed;
  if (filler !== undefined && filler.isTerminating) return wait(SOON_MS, "Restoring", "a pod ends");
  if (filler !== undefined) return remove("Pod", filler, "Restore", "the keys are there");
  const others = [...claims.values()].filter(({ name }) => name !== claim.name);
  const podsThere = [...pods.values()].filter(({ isTerminating }) => !isTerminating);
  const [pod] = podsThere;
  if (pod !== undefined) return remove("Pod", pod, "Restore", `${pod.name} served the old keys`);
  if (pods.size > 0) return wait(SOON_MS, "Restoring", "the old members end");
  const [old] = others.filter(({ isTerminating }) => !isTerminating);
  if (old !== undefined)
    return remove("PersistentVolumeClaim", old, "Restore", `${old.name} has the old keys`);
  if (others.length > 0) return wait(SOON_MS, "Restoring", "the old claims go");
  const begun = { restored: order.id, history: nextHistory(cluster) };
  const status = { ...begun, clusterID: null, recovery: null, memberList: [] };
  const why = "the cluster begins anew with the restored keys";
  return patchStatus("QuorateCluster", cluster.metadata.name, status, "Restored", why);
}

/** What a restore used that is done, or was given up. */
function leftOver({ restorePod: pod, claims, cluster }: Observed): Step | undefined {
  if (pod !== undefined && !pod.isTerminating)
    return remove("Pod", pod, "Removed", "no restore is under way");
  const restored = cluster.status?.restored;
  const claim = [...claims.values()].find(
    ({ restoreId = restored, isTerminating }) => restoreId !== restored && !isTerminating,
  );
  if (claim === undefined || claim.memberId !== undefined) return undefined;
  return remove("PersistentVolumeClaim", claim, "Removed", "its restore was given up");
}
