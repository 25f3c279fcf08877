/**
 * Figures of members, from their status and their two newest scrapes. Undefined where something
 * that they need is not known.
 */
import { histogramSince, quantile } from "../observe/metrics-text.ts";
import type { Row } from "./row.ts";

/** What a counter grew by in a second; undefined without two scrapes, or after a restart. */
export function rate({ now, before }: Row, metric: string): number | undefined {
  const later = now?.metrics.value(metric);
  const earlier = before?.metrics.value(metric);
  if (later === undefined || earlier === undefined || later < earlier || now!.atMs <= before!.atMs)
    return undefined;
  return ((later - earlier) * 1000) / (now!.atMs - before!.atMs);
}

/** The 99th percentile of a histogram in seconds, of what was observed between the two scrapes. */
export function p99({ now, before }: Row, metric: string): number | undefined {
  const later = now?.metrics.histogram(metric);
  const earlier = before?.metrics.histogram(metric);
  return later === undefined || earlier === undefined
    ? undefined
    : quantile(histogramSince(later, earlier), 0.99);
}

/** Whether a member says of itself that it leads. */
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
  /** Every member applies every change, so the quickest tells how many there were. */
  puts: (rows: readonly Row[]) => most(rows.map((row) => rate(row, "etcd_mvcc_put_total"))),
  deletes: (rows: readonly Row[]) => most(rows.map((row) => rate(row, "etcd_mvcc_delete_total"))),
  txns: (rows: readonly Row[]) => most(rows.map((row) => rate(row, "etcd_mvcc_txn_total"))),
  writes: (rows: readonly Row[]) =>
    most(
      rows.map((row) =>
        sum([rate(row, "etcd_mvcc_put_total"), rate(row, "etcd_mvcc_delete_total")]),
      ),
    ),
  /** Reads are each member's own. */
  reads: (rows: readonly Row[]) => sum(rows.map((row) => rate(row, "etcd_mvcc_range_total"))),
  /**
   * How many entries a member is behind the newest that anybody knows. Who has answered in the
   * round after its own counts with the answer before: else every member would seem to be behind by
   * what was written between two rounds.
   */
  lag: ({ status, round }: Row, all: readonly Row[]) => {
    if (status === undefined) return undefined;
    const newest = all.map(
      (one) => (one.round === round + 1 ? one.indexBefore : one.status?.raftIndex) ?? 0,
    );
    return Math.max(0, Math.max(...newest) - status.raftAppliedIndex);
  },
  /**
   * A share of 1. Live records count against the quota of a member of ours, the whole file against
   * that of one of etcd's.
   */
  quota: ({ status, now }: Row) =>
    now?.metrics.value("quorate_server_quota_used_ratio") ??
    (status !== undefined && status.dbSizeQuota > 0
      ? status.dbSize / status.dbSizeQuota
      : undefined),
  /**
   * Where a member does not count its leases: those granted less those revoked since it was
   * started, if that can be.
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
  /** Node's heap, or Go's. */
  heap: ({ now }: Row) =>
    now?.metrics.value("nodejs_heap_size_used_bytes") ??
    now?.metrics.value("go_memstats_heap_inuse_bytes"),
} as const;
