/**
 * What a member counts, under the names that etcd's dashboards and alert rules use (etcd:
 * server/etcdserver/metrics.go and its like).
 */
import type { MvccCounts } from "@quorate/store";
import { CrowdMetrics, type CrowdSources } from "./crowd-metrics.ts";
import {
  type Counter,
  exponentialBuckets,
  type Family,
  type Gauge,
  type Histogram,
  MetricRegistry,
} from "./registry.ts";

/** Methods and codes are closed sets; this is above their product. */
const MAX_METHODS_AND_CODES = 2000;

/** Where gauges that are computed at scrape time get their values. */
export interface MetricSources {
  hasLeader(): boolean;
  isLeader(): boolean;
  isLearner(): boolean;
  commitIndex(): number;
  appliedIndex(): number;
  pendingProposals(): number;
  slowReadIndexes(): number;
  failedReadIndexes(): number;
  counted(what: keyof MvccCounts): number;
  keyCount(): number;
  currentRevision(): number;
  compactRevision(): number;
  sizeBytes(): number;
  sizeInUseBytes(): number;
  quotaBytes(): number;
  /** Live bytes as a share of the quota. */
  quotaUsedShare(): number;
  /** 0, 80 or 90. */
  quotaWarningPercent(): number;
  watchStreams(): number;
  watchers(): number;
  slowWatchers(): number;
  pendingWatchEvents(): number;
  readonly crowds: CrowdSources;
}

/** All metrics of one member. Field names follow the metric names. */
export class MemberMetrics {
  readonly registry = new MetricRegistry();
  readonly crowds: CrowdMetrics;

  // Server.
  readonly leaderChanges: Counter;
  readonly proposalsFailed: Counter;
  readonly heartbeatSendFailures: Counter;
  readonly slowApply: Counter;
  readonly malformedEntries: Counter;
  readonly peerMessagesRefused: Family<Counter>;
  readonly slowDiskHandovers: Counter;
  readonly healthSuccess: Counter;
  readonly healthFailures: Counter;
  readonly snapshotApplyInProgress: Gauge;
  readonly healthcheck: Family<Gauge>;
  readonly healthchecks: Family<Counter>;
  readonly serverVersion: Family<Gauge>;
  readonly serverId: Family<Gauge>;
  readonly clusterVersion: Family<Gauge>;
  readonly clientRequests: Family<Counter>;
  readonly applyDuration: Family<Histogram>;
  readonly requestDuration: Family<Histogram>;
  readonly rangeDuration: Family<Histogram>;
  readonly featureEnabled: Family<Gauge>;
  readonly learnerPromoteSuccesses: Counter;
  readonly learnerPromoteFailures: Family<Counter>;

  // Disk.
  readonly walFsyncDuration: Histogram;
  readonly walWriteBytes: Gauge;
  readonly walWriteDuration: Histogram;
  readonly backendCommitDuration: Histogram;
  readonly snapFsyncDuration: Histogram;
  readonly snapSaveDuration: Histogram;
  readonly snapshotStoreDuration: Histogram;
  readonly clientSnapshotDuration: Histogram;
  readonly defragInFlight: Gauge;
  readonly defragDuration: Histogram;

  // MVCC.
  readonly watchEvents: Counter;
  readonly hashDuration: Histogram;
  readonly hashRevDuration: Histogram;
  readonly compactionPause: Histogram;
  readonly compactionDuration: Histogram;
  readonly compactionLastSeconds: Gauge;
  readonly compactionKeys: Counter;
  readonly alarms: Family<Gauge>;

  // Leases.
  readonly leasesGranted: Counter;
  readonly leasesRevoked: Counter;
  readonly leasesRenewed: Counter;
  readonly leasesExpired: Counter;
  readonly leaseTtls: Histogram;

  // Peers.
  readonly knownPeers: Family<Gauge>;
  readonly activePeers: Family<Gauge>;
  readonly peerSentBytes: Family<Counter>;
  readonly peerReceivedBytes: Family<Counter>;
  readonly peerSentFailures: Family<Counter>;
  readonly peerReceivedFailures: Family<Counter>;
  readonly peerRoundTrip: Family<Histogram>;
  readonly disconnectedPeers: Family<Counter>;
  readonly snapshotSendInflights: Family<Gauge>;
  readonly snapshotReceiveInflights: Family<Gauge>;
  readonly snapshotSendSuccess: Family<Counter>;
  readonly snapshotSendFailures: Family<Counter>;
  readonly snapshotSendDuration: Family<Histogram>;
  readonly snapshotReceiveSuccess: Family<Counter>;
  readonly snapshotReceiveFailures: Family<Counter>;
  readonly snapshotReceiveDuration: Family<Histogram>;

  // Clients.
  readonly clientSentBytes: Counter;
  readonly clientReceivedBytes: Counter;
  readonly grpcStarted: Family<Counter>;
  readonly grpcHandled: Family<Counter>;
  readonly grpcMessagesReceived: Family<Counter>;
  readonly grpcMessagesSent: Family<Counter>;
  /** Only with --metrics=extensive, as in etcd. */
  readonly grpcHandling: Family<Histogram> | undefined;

  constructor(sources: MetricSources, options: { extensive: boolean }) {
    const r = this.registry;
    this.crowds = new CrowdMetrics(r, sources.crowds);
    const flag = (read: () => boolean) => () => (read() ? 1 : 0);
    const latencyBuckets = exponentialBuckets(0.001, 2, 14);

    r.gauge(
      "etcd_server_has_leader",
      "Whether or not a leader exists. 1 is existence, 0 is not.",
      flag(sources.hasLeader),
    );
    r.gauge(
      "etcd_server_is_leader",
      "Whether or not this member is a leader. 1 if is, 0 otherwise.",
      flag(sources.isLeader),
    );
    r.gauge(
      "etcd_server_is_learner",
      "Whether or not this member is a learner. 1 if is, 0 otherwise.",
      flag(sources.isLearner),
    );
    r.gauge(
      "etcd_server_proposals_committed_total",
      "The highest Raft index that is known to be committed.",
      sources.commitIndex,
    );
    r.gauge(
      "etcd_server_proposals_applied_total",
      "The highest Raft index that this member has applied.",
      sources.appliedIndex,
    );
    r.gauge(
      "etcd_server_proposals_pending",
      "Proposals of this member that wait for their result.",
      sources.pendingProposals,
    );
    r.gauge("etcd_server_quota_backend_bytes", "The storage quota in bytes.", sources.quotaBytes);
    r.gauge(
      "quorate_server_quota_used_ratio",
      "Bytes of live records as a share of the quota.",
      sources.quotaUsedShare,
    );
    r.gauge(
      "quorate_server_quota_warning_percent",
      "80 or 90 while live records take that much of the quota, else 0.",
      sources.quotaWarningPercent,
    );
    this.alarms = r.gauges(
      "etcd_debugging_server_alarms",
      "1 for each alarm that is raised, by member and kind.",
      ["server_id", "alarm_type"],
    );
    this.leaderChanges = r.counter(
      "etcd_server_leader_changes_seen_total",
      "Leader changes that this member has seen.",
    );
    this.proposalsFailed = r.counter(
      "etcd_server_proposals_failed_total",
      "Proposals that ended without a result.",
    );
    this.heartbeatSendFailures = r.counter(
      "etcd_server_heartbeat_send_failures_total",
      "Heartbeats that this leader sent too late, mostly because its disk was slow.",
    );
    this.slowApply = r.counter(
      "etcd_server_slow_apply_total",
      "Requests whose application took longer than the warning bound.",
    );
    this.malformedEntries = r.counter(
      "quorate_server_malformed_entries_total",
      "Entries of the log that do not decode. Each was applied as an error and has changed nothing.",
    );
    this.peerMessagesRefused = r.counters(
      "quorate_server_peer_messages_refused_total",
      "Messages and proposals of other members that were refused, because no member sends such content.",
      ["type"],
    );
    r.readCounter(
      "etcd_server_slow_read_indexes_total",
      "Read index rounds that had to be sent again.",
      sources.slowReadIndexes,
    );
    r.readCounter(
      "etcd_server_read_indexes_failed_total",
      "Linearizable reads that failed.",
      sources.failedReadIndexes,
    );
    this.slowDiskHandovers = r.counter(
      "quorate_server_slow_disk_handovers_total",
      "Times that this member handed leadership over because its disk was slow.",
    );
    this.healthSuccess = r.counter("etcd_server_health_success", "Health checks that succeeded.");
    this.healthFailures = r.counter("etcd_server_health_failures", "Health checks that failed.");
    this.snapshotApplyInProgress = r.gauge(
      "etcd_server_snapshot_apply_in_progress_total",
      "1 while an incoming snapshot is being applied, else 0.",
    );
    this.healthcheck = r.gauges(
      "etcd_server_healthcheck",
      "The last result of each health check.",
      ["type", "name"],
    );
    this.healthchecks = r.counters("etcd_server_healthchecks_total", "Health checks by result.", [
      "type",
      "name",
      "status",
    ]);
    this.serverVersion = r.gauges(
      "etcd_server_version",
      "1 for the version that this member speaks.",
      ["server_version"],
    );
    this.serverId = r.gauges("etcd_server_id", "1 for this member's id in hexadecimal.", [
      "server_id",
    ]);
    this.clusterVersion = r.gauges("etcd_cluster_version", "1 for the cluster's version.", [
      "cluster_version",
    ]);
    this.clientRequests = r.counters(
      "etcd_server_client_requests_total",
      "Requests by client API version.",
      ["type", "client_api_version"],
    );
    this.applyDuration = r.histograms(
      "etcd_server_apply_duration_seconds",
      "How long requests take to apply.",
      ["version", "op", "success"],
      exponentialBuckets(0.0001, 2, 20),
    );
    this.requestDuration = r.histograms(
      "etcd_server_request_duration_seconds",
      "How long requests take, by kind.",
      ["type", "success"],
      latencyBuckets,
    );

    this.rangeDuration = r.histograms(
      "etcd_server_range_duration_seconds",
      "How long ranges take once they may be read.",
      ["success"],
      exponentialBuckets(0.0001, 2, 20),
    );
    this.featureEnabled = r.gauges(
      "etcd_server_feature_enabled",
      "1 for each feature gate that is on, else 0.",
      ["name", "stage"],
    );
    this.learnerPromoteSuccesses = r.counter(
      "etcd_server_learner_promote_successes",
      "Learners that this member promoted as leader.",
    );
    this.learnerPromoteFailures = r.counters(
      "etcd_server_learner_promote_failures",
      "Learners that this member as leader would not promote.",
      ["Reason"],
    );

    this.walFsyncDuration = r.histogram(
      "etcd_disk_wal_fsync_duration_seconds",
      "How long fdatasync of the WAL takes.",
      latencyBuckets,
    );
    // A gauge in etcd too.
    this.walWriteBytes = r.gauge("etcd_disk_wal_write_bytes_total", "Bytes written to the WAL.");
    this.walWriteDuration = r.histogram(
      "etcd_disk_wal_write_duration_seconds",
      "How long writing to the WAL takes.",
      latencyBuckets,
    );
    this.backendCommitDuration = r.histogram(
      "etcd_disk_backend_commit_duration_seconds",
      "How long a synced write batch of the backend takes.",
      latencyBuckets,
    );
    this.snapFsyncDuration = r.histogram(
      "etcd_snap_fsync_duration_seconds",
      "How long saving a snapshot file takes.",
      latencyBuckets,
    );
    this.snapSaveDuration = r.histogram(
      "etcd_debugging_snap_save_total_duration_seconds",
      "How long saving a snapshot file takes.",
      latencyBuckets,
    );
    this.snapshotStoreDuration = r.histogram(
      "etcd_snap_db_save_total_duration_seconds",
      "How long it takes to receive a leader's store and have it on the disk.",
      exponentialBuckets(0.1, 2, 10),
    );
    this.clientSnapshotDuration = r.histogram(
      "etcd_disk_backend_snapshot_duration_seconds",
      "How long sending the store to a client that takes a snapshot takes.",
      exponentialBuckets(0.01, 2, 17),
    );

    this.defragInFlight = r.gauge(
      "etcd_disk_defrag_inflight",
      "1 while the backend is being defragmented, else 0.",
    );
    this.defragDuration = r.histogram(
      "etcd_disk_backend_defrag_duration_seconds",
      "How long defragmentation takes; it goes on beside other work.",
      exponentialBuckets(0.1, 2, 13),
    );

    r.gauge("etcd_debugging_mvcc_keys_total", "Keys in the store.", sources.keyCount);
    r.gauge(
      "etcd_debugging_mvcc_current_revision",
      "The current revision of the store.",
      sources.currentRevision,
    );
    r.gauge(
      "etcd_debugging_mvcc_compact_revision",
      "The revision of the last compaction.",
      sources.compactRevision,
    );
    r.gauge(
      "etcd_mvcc_db_total_size_in_bytes",
      "Bytes that the backend takes on disk.",
      sources.sizeBytes,
    );
    r.gauge(
      "etcd_mvcc_db_total_size_in_use_in_bytes",
      "Bytes of live records in the backend.",
      sources.sizeInUseBytes,
    );
    this.compactionPause = r.histogram(
      "etcd_debugging_mvcc_db_compaction_pause_duration_milliseconds",
      "How long one step of a compaction holds the loop.",
      exponentialBuckets(1, 2, 13),
    );
    this.compactionDuration = r.histogram(
      "etcd_debugging_mvcc_db_compaction_total_duration_milliseconds",
      "How long compactions take in all.",
      exponentialBuckets(100, 2, 14),
    );
    this.compactionLastSeconds = r.gauge(
      "etcd_debugging_mvcc_db_compaction_last",
      "When the last compaction ended, in seconds since 1970.",
    );
    this.compactionKeys = r.counter(
      "etcd_debugging_mvcc_db_compaction_keys_total",
      "Records dropped by compaction.",
    );
    const { counted } = sources;
    r.readCounter(
      "etcd_mvcc_put_total",
      "Puts seen by this member, those in transactions too.",
      () => counted("puts"),
    );
    r.readCounter(
      "etcd_mvcc_delete_total",
      "Deletes seen by this member, those in transactions too.",
      () => counted("deletes"),
    );
    r.readCounter(
      "etcd_mvcc_txn_total",
      "Transactions of more than one operation seen by this member.",
      () => counted("txns"),
    );
    r.readCounter(
      "etcd_mvcc_range_total",
      "Ranges seen by this member, those in transactions too.",
      () => counted("ranges"),
    );
    r.gauge("etcd_debugging_mvcc_total_put_size_in_bytes", "Bytes of keys and values put.", () =>
      counted("putBytes"),
    );
    this.hashDuration = r.histogram(
      "etcd_mvcc_hash_duration_seconds",
      "How long Hash takes.",
      exponentialBuckets(0.01, 2, 15),
    );
    this.hashRevDuration = r.histogram(
      "etcd_mvcc_hash_rev_duration_seconds",
      "How long HashKV takes.",
      exponentialBuckets(0.01, 2, 15),
    );

    r.gauge("etcd_debugging_mvcc_watch_stream_total", "Watch streams.", sources.watchStreams);
    r.gauge("etcd_debugging_mvcc_watcher_total", "Watchers.", sources.watchers);
    r.gauge(
      "etcd_debugging_mvcc_slow_watcher_total",
      "Watchers that are behind.",
      sources.slowWatchers,
    );
    r.gauge(
      "etcd_debugging_mvcc_pending_events_total",
      "Events that wait to be sent.",
      sources.pendingWatchEvents,
    );
    this.watchEvents = r.counter(
      "etcd_debugging_mvcc_events_total",
      "Events sent to watchers by this member.",
    );

    this.leasesGranted = r.counter("etcd_debugging_lease_granted_total", "Leases granted.");
    this.leasesRevoked = r.counter(
      "etcd_debugging_lease_revoked_total",
      "Leases revoked, expired ones included.",
    );
    this.leasesRenewed = r.counter(
      "etcd_debugging_lease_renewed_total",
      "Renewals that this member made as leader.",
    );
    this.leasesExpired = r.counter(
      "etcd_debugging_server_lease_expired_total",
      "Expired leases that this member had revoked as leader.",
    );
    this.leaseTtls = r.histogram(
      "etcd_debugging_lease_ttl_total",
      "Seconds that leases were granted for.",
      exponentialBuckets(1, 2, 24),
    );

    this.knownPeers = r.gauges(
      "etcd_network_known_peers",
      "1 for each member of the cluster, this one too.",
      ["Local", "Remote"],
    );
    this.activePeers = r.gauges(
      "etcd_network_active_peers",
      "1 for each peer with a live connection, else 0.",
      ["Local", "Remote"],
    );
    this.peerSentBytes = r.counters("etcd_network_peer_sent_bytes_total", "Bytes sent to peers.", [
      "To",
    ]);
    this.peerReceivedBytes = r.counters(
      "etcd_network_peer_received_bytes_total",
      "Bytes received from peers.",
      ["From"],
    );
    this.peerSentFailures = r.counters(
      "etcd_network_peer_sent_failures_total",
      "Messages to peers that were lost on this side.",
      ["To"],
    );
    this.peerReceivedFailures = r.counters(
      "etcd_network_peer_received_failures_total",
      "Broken input from peers.",
      ["From"],
    );
    this.disconnectedPeers = r.counters(
      "etcd_network_disconnected_peers_total",
      "Connections to peers that were lost.",
      ["Local", "Remote"],
    );
    this.peerRoundTrip = r.histograms(
      "etcd_network_peer_round_trip_time_seconds",
      "Round-trip time between peers.",
      ["To"],
      exponentialBuckets(0.0001, 2, 16),
    );
    this.snapshotSendInflights = r.gauges(
      "etcd_network_snapshot_send_inflights_total",
      "Snapshots that are being sent.",
      ["To"],
    );
    this.snapshotReceiveInflights = r.gauges(
      "etcd_network_snapshot_receive_inflights_total",
      "Snapshots that are being received.",
      ["From"],
    );
    const snapshotBuckets = exponentialBuckets(0.1, 2, 10);
    this.snapshotSendSuccess = r.counters("etcd_network_snapshot_send_success", "Snapshots sent.", [
      "To",
    ]);
    this.snapshotSendFailures = r.counters(
      "etcd_network_snapshot_send_failures",
      "Snapshots that could not be sent.",
      ["To"],
    );
    this.snapshotSendDuration = r.histograms(
      "etcd_network_snapshot_send_total_duration_seconds",
      "How long sending a snapshot takes.",
      ["To"],
      snapshotBuckets,
    );
    this.snapshotReceiveSuccess = r.counters(
      "etcd_network_snapshot_receive_success",
      "Snapshots received.",
      ["From"],
    );
    this.snapshotReceiveFailures = r.counters(
      "etcd_network_snapshot_receive_failures",
      "Snapshots that did not arrive.",
      ["From"],
    );
    this.snapshotReceiveDuration = r.histograms(
      "etcd_network_snapshot_receive_total_duration_seconds",
      "How long receiving a snapshot takes.",
      ["From"],
      snapshotBuckets,
    );

    this.clientSentBytes = r.counter(
      "etcd_network_client_grpc_sent_bytes_total",
      "Bytes sent to gRPC clients.",
    );
    this.clientReceivedBytes = r.counter(
      "etcd_network_client_grpc_received_bytes_total",
      "Bytes received from gRPC clients.",
    );
    const method = ["grpc_type", "grpc_service", "grpc_method"];
    this.grpcStarted = r.counters("grpc_server_started_total", "Calls started.", method);
    this.grpcHandled = r.counters(
      "grpc_server_handled_total",
      "Calls ended, by status code.",
      [...method, "grpc_code"],
      MAX_METHODS_AND_CODES,
    );
    this.grpcMessagesReceived = r.counters(
      "grpc_server_msg_received_total",
      "Messages received in calls.",
      method,
    );
    this.grpcMessagesSent = r.counters(
      "grpc_server_msg_sent_total",
      "Messages sent in calls.",
      method,
    );
    this.grpcHandling = options.extensive
      ? r.histograms(
          "grpc_server_handling_seconds",
          "How long calls take.",
          method,
          [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
        )
      : undefined;
  }
}
