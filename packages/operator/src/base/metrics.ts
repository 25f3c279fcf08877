/**
 * Metrics of the operator. What controller-runtime counts has its names, so that the dashboards and
 * alerts of other operators work.
 */
import { type Family, type Gauge, LATENCY_SECONDS, MetricRegistry } from "@quorate/metrics";
import type { ClusterStatus, QuorateCluster } from "./kinds.ts";
import { keyOf } from "./kube.ts";

const CLUSTER = ["namespace", "name"];

export class OperatorMetrics {
  readonly registry = new MetricRegistry();
  readonly reconciles = this.registry.counters(
    "controller_runtime_reconcile_total",
    "Reconciliations, by result: success, requeue_after, error.",
    ["controller", "result"],
  );
  readonly errors = this.registry.counters(
    "controller_runtime_reconcile_errors_total",
    "Reconciliations that failed.",
    ["controller"],
  );
  readonly seconds = this.registry.histograms(
    "controller_runtime_reconcile_time_seconds",
    "How long reconciliations take.",
    ["controller"],
    LATENCY_SECONDS,
  );
  readonly queued = this.registry.gauges("workqueue_depth", "Objects that wait for their turn.", [
    "name",
  ]);
  readonly leads = this.registry.gauges(
    "leader_election_master_status",
    "Whether this operator leads.",
    ["name"],
  );
  readonly steps = this.registry.counters(
    "quorate_operator_steps_total",
    "Steps that clusters were brought on by, by what was done.",
    ["step"],
  );
  readonly backupTimes = this.registry.gauges(
    "quorate_operator_backup_last_success_timestamp_seconds",
    "When the last snapshot of a QuorateBackup was complete.",
    CLUSTER,
  );
  readonly restorable = this.registry.gauges(
    "quorate_operator_backup_restorable",
    "Whether the last restore test of a QuorateBackup found the cluster's keys.",
    CLUSTER,
  );
  readonly #clusters: Readonly<Record<string, Family<Gauge>>> = {
    wanted: this.registry.gauges(
      "quorate_operator_cluster_size",
      "Members that are wanted.",
      CLUSTER,
    ),
    ready: this.registry.gauges(
      "quorate_operator_cluster_ready_members",
      "Voters that are ready.",
      CLUSTER,
    ),
    available: this.registry.gauges(
      "quorate_operator_cluster_available",
      "Whether a quorum responds.",
      CLUSTER,
    ),
    degraded: this.registry.gauges(
      "quorate_operator_cluster_degraded",
      "Whether people have to look at the cluster.",
      CLUSTER,
    ),
    ends: this.registry.gauges(
      "quorate_operator_certificate_expiration_timestamp_seconds",
      "When the first certificate of the cluster ends.",
      CLUSTER,
    ),
  };

  /** Takes the figures of a cluster from its new status. */
  seeCluster(cluster: QuorateCluster, status: ClusterStatus): void {
    const { namespace, name } = keyOf(cluster);
    const holds = (type: string): number =>
      Number(status.conditions?.some((one) => one.type === type && one.status === "True"));
    const figures: Record<string, number> = {
      wanted: cluster.spec!.size,
      ready: status.readyMembers ?? 0,
      available: holds("Available"),
      degraded: holds("Degraded"),
      ends: Date.parse(status.certificatesEnd ?? "") / 1000 || 0,
    };
    for (const [figure, value] of Object.entries(figures))
      this.#clusters[figure]!.with(namespace, name).value = value;
  }

  /** Drops the figures of a cluster that is gone. */
  forgetCluster(namespace: string, name: string): void {
    for (const family of Object.values(this.#clusters)) family.remove(namespace, name);
  }
}
