/** What the JSON gateway has refused, and what it serves, as metrics. */

import type { MetricRegistry } from "@quorate/metrics";
import type { GatewayReport } from "./client-http.ts";

type Row = readonly [name: string, help: string, key: keyof GatewayReport];

const PREFIX = "quorate_gateway_";
const COUNTERS: readonly Row[] = [
  ["malformed_total", "Bodies that were not the JSON of their message.", "malformed"],
  ["too_large_total", "Requests that were refused for their size.", "tooLarge"],
  ["held_bytes_refusals_total", "Requests refused for want of memory.", "heldBytesRefusals"],
  ["unrouted_total", "Requests for paths or methods that do not exist.", "unrouted"],
];
const GAUGES: readonly Row[] = [
  ["calls", "Calls of the JSON gateway that run.", "calls"],
  ["waiting_calls", "Calls that wait for others to end.", "waitingCalls"],
  ["websockets", "WebSockets of the JSON gateway that are open.", "webSockets"],
];

/** Registers the metrics of a gateway and its WebSockets, read at each scrape. */
export function gatewayMetrics(registry: MetricRegistry, report: () => GatewayReport): void {
  for (const [name, help, key] of COUNTERS)
    registry.readCounter(PREFIX + name, help, () => report()[key]);
  for (const [name, help, key] of GAUGES) registry.gauge(PREFIX + name, help, () => report()[key]);
}
