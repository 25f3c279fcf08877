/**
 * What a member says of its settings when it starts: those in force, under etcd's names, so that a
 * log shows which settings it was written with.
 */
import { formatDurationMs } from "@quorate/host";
import type { AutoCompaction } from "@quorate/member";
import { initialClusterText, type MemberUrl } from "@quorate/member";
import type { ServerConfig } from "./server-config.ts";

/**
 * Fields for the line "starting an etcd server". No secrets: nothing of certificates and, as in
 * etcd, of tokens the cluster's.
 */
export function startFields(
  config: ServerConfig,
): Readonly<Record<string, string | number | boolean | readonly string[]>> {
  return {
    name: config.name,
    "data-dir": config.dataDir,
    "wal-dir": config.walDir,
    "force-new-cluster": config.forceNewCluster,
    "heartbeat-interval": formatDurationMs(config.heartbeatIntervalMs),
    "election-timeout": formatDurationMs(config.electionTimeoutMs),
    "snapshot-count": config.snapshotCount,
    "max-wals": config.maxWalFiles,
    "snapshot-catchup-entries": config.snapshotCatchUpEntries,
    "initial-advertise-peer-urls": texts(config.advertisePeerUrls),
    "listen-peer-urls": texts(config.listenPeerUrls),
    "advertise-client-urls": texts(config.advertiseClientUrls),
    "listen-client-urls": texts(config.listenClientUrls),
    "listen-client-http-urls": texts(config.listenClientHttpUrls),
    "listen-metrics-urls": texts(config.listenMetricsUrls),
    "initial-cluster": initialClusterText(config.initialCluster),
    "initial-cluster-state": config.isNewCluster ? "new" : "existing",
    "initial-cluster-token": config.initialClusterToken,
    "quota-backend-bytes": config.quotaBackendBytes ?? "no limit",
    "max-request-bytes": config.maxRequestBytes,
    "max-txn-ops": config.maxTxnOps,
    "max-concurrent-streams": config.maxConcurrentStreams,
    "pre-vote": config.preVote,
    "corrupt-check-time-interval": formatDurationMs(config.corruptCheckMs),
    "compact-check-time-interval": formatDurationMs(config.compactHashCheckMs),
    "auto-compaction-mode": config.autoCompaction.mode,
    "auto-compaction-retention": retention(config.autoCompaction),
    "feature-gates": [...config.featureGates].filter(([, isOn]) => isOn).map(([name]) => name),
  };
}

function texts(urls: readonly MemberUrl[]): readonly string[] {
  return urls.map((url) => url.text);
}

function retention(compaction: AutoCompaction): string {
  if (compaction.mode === "periodic") return formatDurationMs(compaction.retentionMs);
  return compaction.mode === "revision" ? String(compaction.retentionRevisions) : "0s";
}
