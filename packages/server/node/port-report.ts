/** What the engines and gateways of all threads have counted, as one. */
import type { ServerCounters } from "@quorate/rpc/node";
import type { GatewayReport } from "./client-http.ts";

/** What one thread has counted. */
export interface PortReport {
  readonly engine: ServerCounters;
  /** Undefined where the gateway is off. */
  readonly gateway: GatewayReport | undefined;
}

/** What counts what there is now, and not what there was: nothing is left of it in the past. */
const GAUGES: ReadonlySet<string> = new Set([
  "activeConnections",
  "heldBytes",
  "pendingBytes",
  "headBytes",
  "unsentBytes",
  "openRequests",
  "openStreams",
  "calls",
  "waitingCalls",
  "webSockets",
]);

/** A tree of numbers. */
interface Counts {
  [name: string]: number | Counts | undefined;
}

/** Reports added up, number by number; all have the same numbers. */
export function sumOf(reports: readonly PortReport[]): PortReport {
  const sum: Counts = {};
  for (const report of reports) add(sum, report);
  return sum as object as PortReport;
}

/** What remains of the report of a thread that has ended. */
export function pastOf(report: PortReport): PortReport {
  const past: Counts = {};
  add(past, report);
  dropGauges(past);
  return past as object as PortReport;
}

function add(sum: Counts, counts: object): void {
  for (const [name, value] of Object.entries(counts) as [string, unknown][]) {
    const before = sum[name];
    if (typeof value === "number") sum[name] = (typeof before === "number" ? before : 0) + value;
    else if (typeof value === "object" && value !== null) {
      const inner = typeof before === "object" ? before : {};
      add(inner, value);
      sum[name] = inner;
    }
  }
}

function dropGauges(counts: Counts): void {
  for (const [name, value] of Object.entries(counts)) {
    if (typeof value === "object") dropGauges(value);
    else if (GAUGES.has(name)) counts[name] = 0;
  }
}
