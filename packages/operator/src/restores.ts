/**
 * QuorateRestore: makes the cluster if it is to be made, and orders the restore by an annotation,
 * which the cluster's own plan carries out. Deleting it gives up a restore that is not done.
 */
import type { Clock } from "@quorate/host";
import { report } from "./backups.ts";
import type { QuorateCluster, QuorateRestore } from "./base/kinds.ts";
import { annotationOf, createOnce, GROUP, type Key, type Kube, VERSION } from "./base/kube.ts";
import { RESTORE } from "./cluster/objects.ts";
import type { RestoreOrder } from "./cluster/pods-beside.ts";

const SOON_MS = 2000;
const FINALIZER = `${GROUP}/restore`;

export interface RestoreDeps {
  readonly kube: Kube;
  readonly clock: Clock;
}

export class RestoreReconciler {
  readonly #deps: RestoreDeps;

  constructor(deps: RestoreDeps) {
    this.#deps = deps;
  }

  /** As the reconciler of clusters. */
  async reconcile({ namespace, name }: Key): Promise<number | undefined> {
    const { kube } = this.#deps;
    const restore = await kube.get<QuorateRestore>("QuorateRestore", namespace, name);
    if (restore === undefined) return undefined;
    const { spec, metadata } = restore;
    const { cluster: clusterName, create, from, bumpRevision } = spec!;
    const cluster = await kube.get<QuorateCluster>("QuorateCluster", namespace, clusterName);
    const order: RestoreOrder = { ...from, id: metadata.uid ?? "", bumpRevision };
    const text = JSON.stringify(order);
    if (metadata.deletionTimestamp !== undefined) {
      if (cluster !== undefined && annotationOf(cluster, RESTORE) === text)
        await this.#annotate(namespace, clusterName, null);
      const patch = { metadata: { finalizers: null } };
      await kube.patch("QuorateRestore", namespace, name, patch, "");
      return undefined;
    }
    if (cluster?.status?.restored === order.id) {
      await this.#report(restore, true, "Restored", "the cluster has the restored keys");
      return undefined;
    }
    if (restore.status?.conditions?.some(({ status }) => status === "True")) return undefined;
    if (!(metadata.finalizers ?? []).includes(FINALIZER)) {
      const patch = { metadata: { finalizers: [FINALIZER] } };
      await kube.patch("QuorateRestore", namespace, name, patch, "");
    }
    if (cluster === undefined) {
      if (create === undefined) {
        await this.#report(restore, false, "NoCluster", `${clusterName} is not there`);
        return SOON_MS;
      }
      await createOnce(kube, {
        apiVersion: `${GROUP}/${VERSION}`,
        kind: "QuorateCluster",
        metadata: { name: clusterName, namespace, annotations: { [RESTORE]: text } },
        spec: create,
      });
      return SOON_MS;
    }
    const ordered = annotationOf(cluster, RESTORE);
    if (ordered !== text) {
      if (create !== undefined) {
        const why = `${clusterName} is there already; without spec.create its keys are replaced`;
        await this.#report(restore, false, "ClusterExists", why);
        return SOON_MS;
      }
      const isFree =
        ordered === undefined ||
        (JSON.parse(ordered) as RestoreOrder).id === cluster.status?.restored;
      if (!isFree) {
        await this.#report(restore, false, "Waiting", "another restore is under way");
        return SOON_MS;
      }
      await this.#annotate(namespace, clusterName, text);
    }
    const degraded = cluster.status?.conditions?.find(({ type }) => type === "Degraded");
    const hasFailed = degraded?.reason === "RestoreFailed";
    await this.#report(
      restore,
      false,
      hasFailed ? "RestoreFailed" : "Restoring",
      hasFailed ? degraded.message : "the keys are being restored",
    );
    return SOON_MS;
  }

  async #annotate(namespace: string, cluster: string, text: string | null): Promise<void> {
    const patch = { metadata: { annotations: { [RESTORE]: text } } };
    await this.#deps.kube.patch("QuorateCluster", namespace, cluster, patch, "");
  }

  #report(
    restore: QuorateRestore,
    isDone: boolean,
    reason: string,
    message: string,
  ): Promise<void> {
    const status = isDone ? "True" : "False";
    return report(this.#deps, restore, {}, [{ type: "Ready", status, reason, message }]);
  }
}
