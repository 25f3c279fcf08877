/** Metrics of the store: its size, its revisions, its operations and compactions. */
import {
  counter,
  exponentialBuckets,
  gauge,
  histogram,
  type Reading,
  reading,
} from "@quorate/metrics";
import type { MetricSources } from "./sources.ts";

/** The metrics that the member itself counts. */
export const STORE_METRICS = {
  compactionPause: histogram(
    "etcd_debugging_mvcc_db_compaction_pause_duration_milliseconds",
    "How long one step of a compaction holds the loop.",
    exponentialBuckets(1, 2, 13),
  ),
  compactionDuration: histogram(
    "etcd_debugging_mvcc_db_compaction_total_duration_milliseconds",
    "How long compactions take in all.",
    exponentialBuckets(100, 2, 14),
  ),
  compactionLastSeconds: gauge(
    "etcd_debugging_mvcc_db_compaction_last",
    "When the last compaction ended, in seconds since 1970.",
  ),
  compactionKeys: counter(
    "etcd_debugging_mvcc_db_compaction_keys_total",
    "Records dropped by compaction.",
  ),
  hashDuration: histogram(
    "etcd_mvcc_hash_duration_seconds",
    "How long Hash takes.",
    exponentialBuckets(0.01, 2, 15),
  ),
  hashRevDuration: histogram(
    "etcd_mvcc_hash_rev_duration_seconds",
    "How long HashKV takes.",
    exponentialBuckets(0.01, 2, 15),
  ),
} as const;

/** What is read at a scrape. */
export const STORE_READINGS: readonly Reading<MetricSources>[] = [
  reading("gauge", "etcd_server_quota_backend_bytes", "The storage quota in bytes.", (s) =>
    s.quotaBytes(),
  ),
  reading(
    "gauge",
    "quorate_server_quota_used_ratio",
    "Bytes of live records as a share of the quota.",
    (s) => s.quotaUsedShare(),
  ),
  reading(
    "gauge",
    "quorate_server_quota_warning_percent",
    "80 or 90 while live records take that much of the quota, else 0.",
    (s) => s.quotaWarningPercent(),
  ),
  reading("gauge", "etcd_debugging_mvcc_keys_total", "Keys in the store.", (s) => s.keyCount()),
  reading(
    "gauge",
    "etcd_debugging_mvcc_current_revision",
    "The current revision of the store.",
    (s) => s.currentRevision(),
  ),
  reading(
    "gauge",
    "etcd_debugging_mvcc_compact_revision",
    "The revision of the last compaction.",
    (s) => s.compactRevision(),
  ),
  reading(
    "gauge",
    "etcd_mvcc_db_total_size_in_bytes",
    "Bytes that the backend takes on disk, or what the quota counts if that is more.",
    (s) => s.sizeBytes(),
  ),
  reading(
    "gauge",
    "etcd_mvcc_db_total_size_in_use_in_bytes",
    "Bytes of live records in the backend.",
    (s) => s.sizeInUseBytes(),
  ),
  reading(
    "counter",
    "etcd_mvcc_put_total",
    "Puts seen by this member, those in transactions too.",
    (s) => s.counted("puts"),
  ),
  reading(
    "counter",
    "etcd_mvcc_delete_total",
    "Deletes seen by this member, those in transactions too.",
    (s) => s.counted("deletes"),
  ),
  reading(
    "counter",
    "etcd_mvcc_txn_total",
    "Transactions of more than one operation seen by this member.",
    (s) => s.counted("txns"),
  ),
  reading(
    "counter",
    "etcd_mvcc_range_total",
    "Ranges seen by this member, those in transactions too.",
    (s) => s.counted("ranges"),
  ),
  reading(
    "gauge",
    "etcd_debugging_mvcc_total_put_size_in_bytes",
    "Bytes of keys and values put.",
    (s) => s.counted("putBytes"),
  ),
];
