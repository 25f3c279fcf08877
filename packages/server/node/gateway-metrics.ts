/** What the JSON gateway has refused, and what it serves, as metrics. */

import type { MetricRegistry } from "@quorate/metrics";
import type { Gateway, GatewayCounters } from "@quorate/rpc";
import type { SocketGateway } from "@quorate/rpc/node";

const PREFIX = "quorate_gateway_";
const COUNTERS: readonly (readonly [name: string, help: string, key: keyof GatewayCounters])[] = [
  ["malformed_total", "Bodies that were not the JSON of their message.", "malformed"],
  ["too_large_total", "Requests that were refused for their size.", "tooLarge"],
  ["held_bytes_refusals_total", "Requests refused for want of memory.", "heldBytesRefusals"],
  ["unrouted_total", "Requests for paths or methods that do not exist.", "unrouted"],
];

/** Registers the metrics of a gateway and its WebSockets. */
export function gatewayMetrics(
  registry: MetricRegistry,
  gateway: Gateway,
  sockets: SocketGateway,
): void {
  for (const [name, help, key] of COUNTERS)
    registry.readCounter(PREFIX + name, help, () => gateway.counters[key]);
  const gauges: readonly (readonly [name: string, help: string, read: () => number])[] = [
    ["calls", "Calls of the JSON gateway that run.", () => gateway.calls.running],
    ["waiting_calls", "Calls that wait for others to end.", () => gateway.calls.waiting],
    ["websockets", "WebSockets of the JSON gateway that are open.", () => sockets.size],
  ];
  for (const [name, help, read] of gauges) registry.gauge(PREFIX + name, help, read);
}
