/**
 * What the client port's engine has seen, refused and cut off, as metrics: a counter for each limit
 * that a hostile client can meet.
 */

import type { MetricRegistry } from "@quorate/metrics";
import type { ServerCounters } from "./engine/server.ts";

type Read = (counters: ServerCounters) => number;

const COUNTERS: readonly (readonly [name: string, help: string, read: Read])[] = [
  [
    "connections_accepted_total",
    "Client connections that were taken.",
    (c) => c.acceptedConnections,
  ],
  [
    "connections_refused_total",
    "Client connections closed because their client had the most of all.",
    (c) => c.refusedConnections,
  ],
  [
    "connections_displaced_total",
    "Client connections closed because another client needed a slot.",
    (c) => c.displacedConnections,
  ],
  [
    "handshakes_displaced_total",
    "Client connections closed in too large a crowd of handshakes.",
    (c) => c.displacedHandshakes,
  ],
  [
    "idle_connections_drained_total",
    "Idle client connections asked to go because most were taken.",
    (c) => c.drainedIdleConnections,
  ],
  [
    "tls_handshake_failures_total",
    "TLS handshakes that failed, or whose certificate was refused.",
    (c) => c.failedHandshakes,
  ],
  [
    "tls_handshake_timeouts_total",
    "TLS handshakes that did not end in time.",
    (c) => c.handshakeTimeouts,
  ],
  [
    "silent_connections_total",
    "Connections closed because they did not say what they speak in time.",
    (c) => c.silentConnections,
  ],
  [
    "stalled_connections_total",
    "Connections closed because they did not take what they were sent.",
    (c) => c.stalledConnections,
  ],
  [
    "inflated_messages_total",
    "Requests that were decompressed on another thread.",
    (c) => c.inflatedMessages,
  ],
  [
    "inflate_waits_total",
    "Times that compressed requests waited because a connection had sent too much.",
    (c) => c.inflateWaits,
  ],
  ["http1_connections_total", "Connections that use HTTP/1.1.", (c) => c.http1.connections],
  ["http1_requests_total", "HTTP/1.1 requests with complete headers.", (c) => c.http1.requests],
  ["http1_upgrades_total", "HTTP/1.1 connections that became WebSockets.", (c) => c.http1.upgrades],
  [
    "http1_malformed_requests_total",
    "HTTP/1.1 connections ended because a request broke a rule.",
    (c) => c.http1.malformedRequests,
  ],
  [
    "http1_headers_too_large_total",
    "HTTP/1.1 requests refused because their headers or trailers were too long.",
    (c) => c.http1.headersTooLarge,
  ],
  [
    "http1_request_timeouts_total",
    "HTTP/1.1 requests that were not complete in time.",
    (c) => c.http1.requestTimeouts,
  ],
  ["http2_connections_total", "Connections that spoke HTTP/2.", (c) => c.http2.connections],
  ["http2_streams_total", "HTTP/2 requests that got a stream.", (c) => c.http2.streams],
  [
    "http2_refused_streams_total",
    "Streams refused because a connection had as many as it may have.",
    (c) => c.http2.refusedStreams,
  ],
  [
    "http2_resets_received_total",
    "Streams that clients reset before they were answered.",
    (c) => c.http2.resetsReceived,
  ],
  [
    "http2_reset_floods_total",
    "Connections ended because of too many resets.",
    (c) => c.http2.resetFloods,
  ],
  [
    "http2_frame_floods_total",
    "Connections ended because of too many frames that move nothing.",
    (c) => c.http2.frameFloods,
  ],
  [
    "http2_ping_floods_total",
    "Connections ended because the client pinged too often.",
    (c) => c.http2.pingFloods,
  ],
  [
    "http2_header_block_floods_total",
    "Connections ended because of a header block without end.",
    (c) => c.http2.headerBlockFloods,
  ],
  [
    "http2_header_lists_too_large_total",
    "Requests refused because their headers were too long.",
    (c) => c.http2.headerListsTooLarge,
  ],
  [
    "http2_held_bytes_refusals_total",
    "Requests refused because requests held too much memory.",
    (c) => c.http2.heldBytesRefusals,
  ],
  [
    "http2_head_bytes_refusals_total",
    "Requests refused because open streams took too much memory.",
    (c) => c.http2.headBytesRefusals,
  ],
  [
    "http2_pending_bytes_refusals_total",
    "Streams cut off because answers held too much memory.",
    (c) => c.http2.pendingBytesRefusals,
  ],
  [
    "http2_largest_holder_cuts_total",
    "Connections ended because they held the most memory of all.",
    (c) => c.http2.largestHolderCuts,
  ],
  [
    "http2_send_stalls_total",
    "Connections ended because finished answers were not taken.",
    (c) => c.http2.sendStalls,
  ],
  [
    "http2_preface_timeouts_total",
    "Connections ended because the preface was not whole in time.",
    (c) => c.http2.prefaceTimeouts,
  ],
  [
    "http2_frame_timeouts_total",
    "Connections ended because a frame was not whole in time.",
    (c) => c.http2.frameTimeouts,
  ],
  [
    "http2_keepalive_timeouts_total",
    "Connections ended because a ping was not answered.",
    (c) => c.http2.keepAliveTimeouts,
  ],
  [
    "http2_stream_errors_total",
    "Streams that broke a rule of HTTP/2.",
    (c) => c.http2.streamErrors,
  ],
  [
    "http2_connection_errors_total",
    "Connections that broke a rule of HTTP/2.",
    (c) => c.http2.connectionErrors,
  ],
  [
    "http2_compression_errors_total",
    "Header blocks that could not be decoded.",
    (c) => c.http2.compressionErrors,
  ],
];

const GAUGES: readonly (readonly [name: string, help: string, read: Read])[] = [
  ["connections", "Client connections that are open.", (c) => c.activeConnections],
  [
    "http1_open_requests",
    "HTTP/1.1 requests that are served, WebSockets included.",
    (c) => c.http1.openRequests,
  ],
  ["http2_open_streams", "HTTP/2 streams that are open.", (c) => c.http2.openStreams],
  ["held_bytes", "Bytes of requests that are being received or worked on.", (c) => c.heldBytes],
  ["head_bytes", "Bytes that open streams take, their headers above all.", (c) => c.headBytes],
  ["pending_bytes", "Bytes of answers that wait for clients' windows.", (c) => c.pendingBytes],
  ["unsent_bytes", "Bytes that wait for sockets.", (c) => c.unsentBytes],
];

/** Declares the engine's metrics, read at each scrape. */
export function engineMetrics(registry: MetricRegistry, counters: () => ServerCounters): void {
  for (const [name, help, read] of COUNTERS)
    registry.readCounter(`quorate_rpc_${name}`, help, () => read(counters()));
  for (const [name, help, read] of GAUGES)
    registry.gauge(`quorate_rpc_${name}`, help, () => read(counters()));
}
