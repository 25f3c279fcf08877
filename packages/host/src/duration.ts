/** Durations as Go writes and reads them: "300ms", "1h30m", "-1.5s", "0". */
import { trimEndOf } from "./trim.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** The longest duration that Go can hold (2^63 ns), in milliseconds. */
const MAX_DURATION_MS = 9_223_372_036_854;

/** Why a text is no duration, with the message of Go's time.ParseDuration. */
export interface DurationProblem {
  readonly code: "Invalid" | "MissingUnit" | "UnknownUnit";
  readonly message: string;
}

/** @returns milliseconds, with a fraction below one millisecond */
export function parseDuration(text: string): number | DurationProblem {
  const quoted = JSON.stringify(text);
  const body = text.replace(/^[+-]/, "");
  if (body === "0") return 0;
  let totalMs = 0;
  let end = 0;
  for (const { 0: part, 1: number, 2: unit = "", index } of body.matchAll(
    /([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([^0-9.]*)/g,
  )) {
    if (index !== end) break;
    if (unit === "") {
      return { code: "MissingUnit", message: `time: missing unit in duration ${quoted}` };
    }
    const unitMs = UNIT_MS[unit];
    if (unitMs === undefined) {
      const message = `time: unknown unit ${JSON.stringify(unit)} in duration ${quoted}`;
      return { code: "UnknownUnit", message };
    }
    totalMs += Number(number) * unitMs;
    end = index + part.length;
  }
  if (end === 0 || end !== body.length || totalMs > MAX_DURATION_MS) {
    return { code: "Invalid", message: `time: invalid duration ${quoted}` };
  }
  return text.startsWith("-") ? -totalMs : totalMs;
}

/** As formatDurationNs, rounded to a nanosecond. */
export function formatDurationMs(durationMs: number): string {
  return formatDurationNs(BigInt(Math.round(durationMs * 1e6)));
}

/** A duration as Go prints it: "0s", "1.5µs", "2.978392ms", "1m0.25s", "2h0m0s". */
export function formatDurationNs(durationNs: bigint): string {
  if (durationNs === 0n) return "0s";
  if (durationNs < 0n) return `-${formatDurationNs(-durationNs)}`;
  if (durationNs < 1000n) return `${durationNs}ns`;
  if (durationNs < 1_000_000n) return `${decimal(durationNs, 1000n)}µs`;
  if (durationNs < 1_000_000_000n) return `${decimal(durationNs, 1_000_000n)}ms`;
  const minutes = durationNs / 60_000_000_000n;
  const seconds = `${decimal(durationNs % 60_000_000_000n, 1_000_000_000n)}s`;
  if (minutes === 0n) return seconds;
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** `value` in units of `unit`, a power of ten, without trailing zeros. */
function decimal(value: bigint, unit: bigint): string {
  const digits = (value % unit).toString().padStart(unit.toString().length - 1, "0");
  const fraction = trimEndOf(digits, "0");
  return fraction === "" ? String(value / unit) : `${value / unit}.${fraction}`;
}
