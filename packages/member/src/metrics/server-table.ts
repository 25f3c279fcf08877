/** Metrics of a member as a part of its cluster: leadership, proposals, health, versions. */
import {
  counter,
  counters,
  exponentialBuckets,
  gauge,
  gauges,
  histograms,
  LATENCY_SECONDS,
  type Reading,
  reading,
} from "@quorate/metrics";
import type { MetricSources } from "./sources.ts";

/** The metrics that the member itself counts. */
export const SERVER_METRICS = {
  alarms: gauges(
    "etcd_debugging_server_alarms",
    "1 for each alarm that is raised, by member and kind.",
    ["server_id", "alarm_type"],
  ),
  leaderChanges: counter(
    "etcd_server_leader_changes_seen_total",
    "Leader changes that this member has seen.",
  ),
  proposalsFailed: counter(
    "etcd_server_proposals_failed_total",
    "Proposals that ended without a result.",
  ),
  heartbeatSendFailures: counter(
    "etcd_server_heartbeat_send_failures_total",
    "Heartbeats that this leader sent too late, mostly because its disk was slow.",
  ),
  slowApply: counter(
    "etcd_server_slow_apply_total",
    "Requests whose application took longer than the warning bound.",
  ),
  malformedEntries: counter(
    "quorate_server_malformed_entries_total",
    "Entries of the log that do not decode. Each was applied as an error and has changed nothing.",
  ),
  peerMessagesRefused: counters(
    "quorate_server_peer_messages_refused_total",
    "Messages and proposals of other members that were refused, because no member sends such content.",
    ["type"],
  ),
  healthSuccess: counter("etcd_server_health_success", "Health checks that succeeded."),
  healthFailures: counter("etcd_server_health_failures", "Health checks that failed."),
  snapshotApplyInProgress: gauge(
    "etcd_server_snapshot_apply_in_progress_total",
    "1 while an incoming snapshot is being applied, else 0.",
  ),
  healthcheck: gauges("etcd_server_healthcheck", "The last result of each health check.", [
    "type",
    "name",
  ]),
  healthchecks: counters("etcd_server_healthchecks_total", "Health checks by result.", [
    "type",
    "name",
    "status",
  ]),
  serverVersion: gauges("etcd_server_version", "1 for the version that this member speaks.", [
    "server_version",
  ]),
  serverId: gauges("etcd_server_id", "1 for this member's id in hexadecimal.", ["server_id"]),
  clusterVersion: gauges("etcd_cluster_version", "1 for the cluster's version.", [
    "cluster_version",
  ]),
  applyDuration: histograms(
    "etcd_server_apply_duration_seconds",
    "How long requests take to apply.",
    ["version", "op", "success"],
    exponentialBuckets(0.0001, 2, 20),
  ),
  requestDuration: histograms(
    "etcd_server_request_duration_seconds",
    "How long requests take, by kind.",
    ["type", "success"],
    LATENCY_SECONDS,
  ),
  rangeDuration: histograms(
    "etcd_server_range_duration_seconds",
    "How long ranges take once they may be read.",
    ["success"],
    exponentialBuckets(0.0001, 2, 20),
  ),
  featureEnabled: gauges(
    "etcd_server_feature_enabled",
    "1 for each feature gate that is on, else 0.",
    ["name", "stage"],
  ),
  learnerPromoteSuccesses: counter(
    "etcd_server_learner_promote_successes",
    "Learners that this member promoted as leader.",
  ),
  learnerPromoteFailures: counters(
    "etcd_server_learner_promote_failures",
    "Learners that this member as leader would not promote.",
    ["Reason"],
  ),
} as const;

/** What is read at a scrape. */
export const SERVER_READINGS: readonly Reading<MetricSources>[] = [
  reading(
    "gauge",
    "etcd_server_has_leader",
    "Whether or not a leader exists. 1 is existence, 0 is not.",
    (s) => s.hasLeader(),
  ),
  reading(
    "gauge",
    "etcd_server_is_leader",
    "Whether or not this member is a leader. 1 if is, 0 otherwise.",
    (s) => s.isLeader(),
  ),
  reading(
    "gauge",
    "etcd_server_is_learner",
    "Whether or not this member is a learner. 1 if is, 0 otherwise.",
    (s) => s.isLearner(),
  ),
  reading(
    "gauge",
    "etcd_server_proposals_committed_total",
    "The highest Raft index that is known to be committed.",
    (s) => s.commitIndex(),
  ),
  reading(
    "gauge",
    "etcd_server_proposals_applied_total",
    "The highest Raft index that this member has applied.",
    (s) => s.appliedIndex(),
  ),
  reading(
    "gauge",
    "etcd_server_proposals_pending",
    "Proposals of this member that wait for their result.",
    (s) => s.pendingProposals(),
  ),
  reading(
    "counter",
    "etcd_server_slow_read_indexes_total",
    "Read index rounds that had to be sent again.",
    (s) => s.slowReadIndexes(),
  ),
  reading(
    "counter",
    "etcd_server_read_indexes_failed_total",
    "Linearizable reads that failed.",
    (s) => s.failedReadIndexes(),
  ),
];
