/** The columns of top's tables: what each says of a member, from its status and its metrics of two times. */
import { histogramSince, type MetricsText, quantile } from "../observe/metrics-text.ts";
import { grouped, shownBytes, shownCount, shownRate, shownSeconds, shownShare, UNKNOWN } from "./numbers.ts";
import type { MemberSample } from "./sample.ts";

/** A member beside what it was at the sample before. */
export interface Pair {
  readonly now: MemberSample;
  readonly before: MemberSample | undefined;
}

export interface TopColumn {
  readonly title: string;
  /** Texts stand to the left, numbers to the right. */
  readonly isText?: boolean;
  readonly cell: (pair: Pair, all: readonly Pair[]) => string;
}

const nameColumn: TopColumn = { title: "MEMBER", isText: true, cell: ({ now }) => now.label };

/** Where each member stands. */
export const stateColumns: readonly TopColumn[] = [
  nameColumn,
  { title: "ROLE", isText: true, cell: ({ now }) => role(now) },
  { title: "VERSION", isText: true, cell: ({ now }) => now.status?.version ?? UNKNOWN },
  { title: "INDEX", cell: ({ now }) => shownCount(now.status?.raftAppliedIndex) },
  { title: "LAG", cell: ({ now }, all) => lag(now, all) },
  { title: "DB SIZE", cell: ({ now }) => shownBytes(now.status?.dbSize) },
  { title: "IN USE", cell: ({ now }) => shownBytes(now.status?.dbSizeInUse) },
  { title: "QUOTA", cell: ({ now }) => quota(now) },
];

/** How quick it was since the sample before. */
export const latencyColumns: readonly TopColumn[] = [
  nameColumn,
  { title: "RANGES/S", cell: (pair) => shownRate(rate(pair, "etcd_mvcc_range_total")) },
  { title: "REQUEST P99", cell: (pair) => p99(pair, "etcd_server_request_duration_seconds") },
  { title: "APPLY P99", cell: (pair) => p99(pair, "etcd_server_apply_duration_seconds") },
  { title: "FSYNC P99", cell: (pair) => p99(pair, "etcd_disk_wal_fsync_duration_seconds") },
  { title: "COMMIT P99", cell: (pair) => p99(pair, "etcd_disk_backend_commit_duration_seconds") },
  { title: "PEER P99", cell: (pair) => p99(pair, "etcd_network_peer_round_trip_time_seconds") },
];

/** What its process has to do. */
export const processColumns: readonly TopColumn[] = [
  nameColumn,
  { title: "WATCHERS", cell: ({ now }) => shownCount(now.metrics?.value("etcd_debugging_mvcc_watcher_total")) },
  { title: "LEASES", cell: ({ now }) => shownCount(now.metrics?.value("quorate_server_leases") ?? leases(now.metrics)) },
  { title: "CONNECTIONS", cell: ({ now }) => shownCount(now.metrics?.value("quorate_rpc_connections")) },
  { title: "CPU", cell: (pair) => shownShare(rate(pair, "process_cpu_seconds_total")) },
  { title: "MEMORY", cell: ({ now }) => shownBytes(now.metrics?.value("process_resident_memory_bytes")) },
  { title: "HEAP", cell: ({ now }) => shownBytes(heap(now.metrics)) },
  { title: "LOOP P99", cell: ({ now }) => shownSeconds(now.metrics?.value("nodejs_eventloop_lag_p99_seconds")) },
];

/** Whether it says of itself that it leads. */
export function leads({ status }: MemberSample): boolean {
  return status !== undefined && status.leader !== 0n && status.leader === status.header?.memberId;
}

/** What a counter grew by in a second; undefined without two samples, or after a restart. */
export function rate({ now, before }: Pair, metric: string): number | undefined {
  const later = now.metrics?.value(metric);
  const earlier = before?.metrics?.value(metric);
  if (later === undefined || earlier === undefined || later < earlier || now.atMs <= before!.atMs) return undefined;
  return ((later - earlier) * 1000) / (now.atMs - before!.atMs);
}

function role(one: MemberSample): string {
  if (one.status === undefined) return "no answer";
  if (leads(one)) return "leader";
  return one.status.isLearner ? "learner" : one.status.leader === 0n ? "no leader" : "follower";
}

/** How many entries a member is behind the newest that anybody knows. */
function lag({ status }: MemberSample, all: readonly Pair[]): string {
  if (status === undefined) return UNKNOWN;
  const newest = Math.max(...all.map(({ now }) => now.status?.raftIndex ?? 0));
  return grouped(Math.max(0, newest - status.raftAppliedIndex));
}

/** Live records count against the quota of a member of ours, the whole file against that of one of etcd's. */
function quota({ status, metrics }: MemberSample): string {
  const used = metrics?.value("quorate_server_quota_used_ratio");
  if (used !== undefined) return shownShare(used);
  return status !== undefined && status.dbSizeQuota > 0 ? shownShare(status.dbSize / status.dbSizeQuota) : UNKNOWN;
}

function p99({ now, before }: Pair, metric: string): string {
  const later = now.metrics?.histogram(metric);
  const earlier = before?.metrics?.histogram(metric);
  return later === undefined || earlier === undefined ? UNKNOWN : shownSeconds(quantile(histogramSince(later, earlier), 0.99));
}

/** Where a member does not count its leases: those granted less those revoked since it was started, if that can be. */
function leases(metrics: MetricsText | undefined): number | undefined {
  const granted = metrics?.value("etcd_debugging_lease_granted_total");
  const revoked = metrics?.value("etcd_debugging_lease_revoked_total");
  return granted === undefined || revoked === undefined || revoked > granted ? undefined : granted - revoked;
}

/** Node's heap, or Go's. */
function heap(metrics: MetricsText | undefined): number | undefined {
  return metrics?.value("nodejs_heap_size_used_bytes") ?? metrics?.value("go_memstats_heap_inuse_bytes");
}
