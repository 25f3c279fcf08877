/**
 * Figures of members, from their status and their two newest scrapes; undefined if an input is
 * missing.
 */
import { histogramSince, quantile } from "../observe/metrics-text.ts";
import type { Row } from "./row.ts";

/** The rate of a counter per second; undefined without two scrapes, or after a restart. */
export function rate({ now, before }: Row, metric: string): number | undefined {
  if (now === undefined || before === undefined || now.atMs <= before.atMs) return undefined;
  const later = now.metrics.value(metric);
  const earlier = before.metrics.value(metric);
  if (later === undefined || earlier === undefined || later < earlier) return undefined;
  return ((later - earlier) * 1000) / (now.atMs - before.atMs);
}

/** The 99th percentile of a histogram in seconds, of the observations between the two scrapes. */
export function p99({ now, before }: Row, metric: string): number | undefined {
  const later = now?.metrics.histogram(metric);
  const earlier = before?.metrics.histogram(metric);
  return later === undefined || earlier === undefined
    ? undefined
    : quantile(histogramSince(later, earlier), 0.99);
}

/** Whether a member's status names itself as the leader. */
export function leads({ status }: Pick<Row, "status">): boolean {
  return status !== undefined && status.leader !== 0n && status.leader === status.header?.memberId;
}

function sum(values: readonly (number | undefined)[]): number | undefined {
  return values.reduce((a, b) => (b === undefined ? a : (a ?? 0) + b), undefined);
}

function most(values: readonly (number | undefined)[]): number | undefined {
  return values.reduce((a, b) => (b === undefined ? a : Math.max(a ?? b, b)), undefined);
}

export const figures = {
  calls: (row: Row) => rate(row, "grpc_server_handled_total"),
  fsyncP99: (row: Row) => p99(row, "etcd_disk_wal_fsync_duration_seconds"),
  /** Every member applies every change, so the highest rate is the cluster's. */
  puts: (rows: readonly Row[]) => most(rows.map((row) => rate(row, "etcd_mvcc_put_total"))),
  deletes: (rows: readonly Row[]) => most(rows.map((row) => rate(row, "etcd_mvcc_delete_total"))),
  txns: (rows: readonly Row[]) => most(rows.map((row) => rate(row, "etcd_mvcc_txn_total"))),
  writes: (rows: readonly Row[]) =>
    most(
      rows.map((row) =>
        sum([rate(row, "etcd_mvcc_put_total"), rate(row, "etcd_mvcc_delete_total")]),
      ),
    ),
  /** Each read runs on one member, so the rates add up. */
  reads: (rows: readonly Row[]) => sum(rows.map((row) => rate(row, "etcd_mvcc_range_total"))),
  /**
   * The entries that a member is behind the newest known entry. Members that already responded in a
   * newer round count with their previous response: otherwise every member would seem to lag by the
   * writes between two rounds.
   */
  lag: ({ status, round }: Row, all: readonly Row[]) => {
    if (status === undefined) return undefined;
    const newest = all.map(
      (one) => (one.round === round + 1 ? one.indexBefore : one.status?.raftIndex) ?? 0,
    );
    return Math.max(0, Math.max(...newest) - status.raftAppliedIndex);
  },
  /**
   * A fraction of 1. Quorate counts live records against the quota, etcd the whole file.
   */
  quota: ({ status, now }: Row) =>
    now?.metrics.value("quorate_server_quota_used_ratio") ??
    (status !== undefined && status.dbSizeQuota > 0
      ? status.dbSize / status.dbSizeQuota
      : undefined),
  /**
   * For members that do not export their number of leases: granted minus revoked since the start,
   * if not negative.
   */
  leases: ({ now }: Row) => {
    const counted = now?.metrics.value("quorate_server_leases");
    const granted = now?.metrics.value("etcd_debugging_lease_granted_total");
    const revoked = now?.metrics.value("etcd_debugging_lease_revoked_total");
    return (
      counted ??
      (granted === undefined || revoked === undefined || revoked > granted
        ? undefined
        : granted - revoked)
    );
  },
  /** The heap of Node or Go. */
  heap: ({ now }: Row) =>
    now?.metrics.value("nodejs_heap_size_used_bytes") ??
    now?.metrics.value("go_memstats_heap_inuse_bytes"),
} as const;
