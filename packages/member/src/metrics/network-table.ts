/** Metrics of the connections to peers. */
import { counters, exponentialBuckets, gauges, histograms } from "@quorate/metrics";

const SNAPSHOT_SECONDS = exponentialBuckets(0.1, 2, 10);

/** The metrics that the member itself counts. */
export const NETWORK_METRICS = {
  knownPeers: gauges(
    "etcd_network_known_peers",
    "1 for each member of the cluster, this one too.",
    ["Local", "Remote"],
  ),
  activePeers: gauges(
    "etcd_network_active_peers",
    "1 for each peer with a live connection, else 0.",
    ["Local", "Remote"],
  ),
  peerSentBytes: counters("etcd_network_peer_sent_bytes_total", "Bytes sent to peers.", ["To"]),
  peerReceivedBytes: counters(
    "etcd_network_peer_received_bytes_total",
    "Bytes received from peers.",
    ["From"],
  ),
  peerSentFailures: counters(
    "etcd_network_peer_sent_failures_total",
    "Messages to peers that were lost on this side.",
    ["To"],
  ),
  peerReceivedFailures: counters(
    "etcd_network_peer_received_failures_total",
    "Broken input from peers.",
    ["From"],
  ),
  disconnectedPeers: counters(
    "etcd_network_disconnected_peers_total",
    "Connections to peers that were lost.",
    ["Local", "Remote"],
  ),
  peerRoundTrip: histograms(
    "etcd_network_peer_round_trip_time_seconds",
    "Round-trip time between peers.",
    ["To"],
    exponentialBuckets(0.0001, 2, 16),
  ),
  snapshotSendInflights: gauges(
    "etcd_network_snapshot_send_inflights_total",
    "Snapshots that are being sent.",
    ["To"],
  ),
  snapshotReceiveInflights: gauges(
    "etcd_network_snapshot_receive_inflights_total",
    "Snapshots that are being received.",
    ["From"],
  ),
  snapshotSendSuccess: counters("etcd_network_snapshot_send_success", "Snapshots sent.", ["To"]),
  snapshotSendFailures: counters(
    "etcd_network_snapshot_send_failures",
    "Snapshots that could not be sent.",
    ["To"],
  ),
  snapshotSendDuration: histograms(
    "etcd_network_snapshot_send_total_duration_seconds",
    "How long sending a snapshot takes.",
    ["To"],
    SNAPSHOT_SECONDS,
  ),
  snapshotReceiveSuccess: counters("etcd_network_snapshot_receive_success", "Snapshots received.", [
    "From",
  ]),
  snapshotReceiveFailures: counters(
    "etcd_network_snapshot_receive_failures",
    "Snapshots that did not arrive.",
    ["From"],
  ),
  snapshotReceiveDuration: histograms(
    "etcd_network_snapshot_receive_total_duration_seconds",
    "How long receiving a snapshot takes.",
    ["From"],
    SNAPSHOT_SECONDS,
  ),
} as const;
