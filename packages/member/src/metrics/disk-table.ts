/** Metrics of the disk: the log, the backend, snapshots and defragmentation. */
import { counter, exponentialBuckets, gauge, histogram, LATENCY_SECONDS } from "@quorate/metrics";

/** The metrics that the member itself counts. */
export const DISK_METRICS = {
  slowDiskHandovers: counter(
    "quorate_server_slow_disk_handovers_total",
    "Times that this member handed leadership over because its disk was slow.",
  ),
  walFsyncDuration: histogram(
    "etcd_disk_wal_fsync_duration_seconds",
    "How long fdatasync of the WAL takes.",
    LATENCY_SECONDS,
  ),
  // A gauge in etcd too.
  walWriteBytes: gauge("etcd_disk_wal_write_bytes_total", "Bytes written to the WAL."),
  walWriteDuration: histogram(
    "etcd_disk_wal_write_duration_seconds",
    "How long writing to the WAL takes.",
    LATENCY_SECONDS,
  ),
  backendCommitDuration: histogram(
    "etcd_disk_backend_commit_duration_seconds",
    "How long a synced write batch of the backend takes.",
    LATENCY_SECONDS,
  ),
  snapFsyncDuration: histogram(
    "etcd_snap_fsync_duration_seconds",
    "How long saving a snapshot file takes.",
    LATENCY_SECONDS,
  ),
  snapSaveDuration: histogram(
    "etcd_debugging_snap_save_total_duration_seconds",
    "How long saving a snapshot file takes.",
    LATENCY_SECONDS,
  ),
  snapshotStoreDuration: histogram(
    "etcd_snap_db_save_total_duration_seconds",
    "How long it takes to receive a leader's store and have it on the disk.",
    exponentialBuckets(0.1, 2, 10),
  ),
  clientSnapshotDuration: histogram(
    "etcd_disk_backend_snapshot_duration_seconds",
    "How long sending the store to a client that takes a snapshot takes.",
    exponentialBuckets(0.01, 2, 17),
  ),
  defragInFlight: gauge(
    "etcd_disk_defrag_inflight",
    "1 while the backend is being defragmented, else 0.",
  ),
  defragDuration: histogram(
    "etcd_disk_backend_defrag_duration_seconds",
    "How long defragmentation takes; it goes on beside other work.",
    exponentialBuckets(0.1, 2, 13),
  ),
} as const;
