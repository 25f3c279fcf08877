/** Metrics of clients' calls, watches and snapshots. */

import { counter, counters, gauge, histograms, type Reading, reading } from "@quorate/metrics";
import type { MetricSources } from "./sources.ts";

/** Methods and codes are closed sets; this is above their product. */
const MAX_METHODS_AND_CODES = 2000;

const METHOD = ["grpc_type", "grpc_service", "grpc_method"] as const;

/** The metrics that the member itself counts. */
export const CALLS_METRICS = {
  clientRequests: counters("etcd_server_client_requests_total", "Requests by client API version.", [
    "type",
    "client_api_version",
  ]),
  watchEvents: counter(
    "etcd_debugging_mvcc_events_total",
    "Events sent to watchers by this member.",
  ),
  clientSentBytes: counter(
    "etcd_network_client_grpc_sent_bytes_total",
    "Bytes sent to gRPC clients.",
  ),
  clientReceivedBytes: counter(
    "etcd_network_client_grpc_received_bytes_total",
    "Bytes received from gRPC clients.",
  ),
  grpcStarted: counters("grpc_server_started_total", "Calls started.", METHOD),
  grpcHandled: counters(
    "grpc_server_handled_total",
    "Calls ended, by status code.",
    [...METHOD, "grpc_code"],
    MAX_METHODS_AND_CODES,
  ),
  grpcMessagesReceived: counters(
    "grpc_server_msg_received_total",
    "Messages received in calls.",
    METHOD,
  ),
  grpcMessagesSent: counters("grpc_server_msg_sent_total", "Messages sent in calls.", METHOD),
  snapshotsSending: gauge(
    "quorate_server_snapshots_sending",
    "Snapshots that are being sent to clients.",
  ),
  snapshotsWaiting: gauge(
    "quorate_server_snapshots_waiting",
    "Snapshots that wait until others have been sent.",
  ),
  snapshotStalls: counter(
    "quorate_server_snapshot_stalls_total",
    "Snapshots ended because their client did not take them.",
  ),
} as const;

/** Counted only with --metrics=extensive, as in etcd. */
export const EXTENSIVE_CALLS_METRICS = {
  grpcHandling: histograms(
    "grpc_server_handling_seconds",
    "How long calls take.",
    METHOD,
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  ),
} as const;

/** What is read at a scrape. */
export const CALLS_READINGS: readonly Reading<MetricSources>[] = [
  reading("gauge", "etcd_debugging_mvcc_watch_stream_total", "Watch streams.", (s) =>
    s.watchStreams(),
  ),
  reading("gauge", "etcd_debugging_mvcc_watcher_total", "Watchers.", (s) => s.watchers()),
  reading("gauge", "etcd_debugging_mvcc_slow_watcher_total", "Watchers that are behind.", (s) =>
    s.slowWatchers(),
  ),
  reading(
    "gauge",
    "etcd_debugging_mvcc_pending_events_total",
    "Events that wait to be sent.",
    (s) => s.pendingWatchEvents(),
  ),
  reading(
    "gauge",
    "quorate_watch_bytes",
    "Bytes of memory that watches and their keys take, about.",
    (s) => s.watchBytes(),
  ),
  reading(
    "counter",
    "quorate_watch_refused_total",
    "Watches that were not made because there were too many.",
    (s) => s.watchesRefused(),
  ),
  reading(
    "gauge",
    "quorate_contest_bytes",
    "Bytes that callers who wait for locks and elections take, about.",
    (s) => s.contestantBytes(),
  ),
  reading(
    "counter",
    "quorate_contest_refused_total",
    "Calls of locks and elections refused because too many waited.",
    (s) => s.contestantsRefused(),
  ),
];
