/**
 * The values that options take, read as Go's flag package and etcd's config file read them. Parsers
 * throw ValueError with a text that the caller prefixes with the name of the flag, variable or key.
 */

/** A text that is not a value of the wanted type. */
export class ValueError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ValueError";
  }
}

const TRUE = new Set(["1", "t", "T", "true", "TRUE", "True"]);
const FALSE = new Set(["0", "f", "F", "false", "FALSE", "False"]);

/** A boolean in the spellings of Go's strconv.ParseBool. */
export function parseBool(text: string): boolean {
  if (TRUE.has(text)) return true;
  if (FALSE.has(text)) return false;
  throw new ValueError("parse error (expected true or false)");
}

const INTEGER = /^([+-]?)(?:0[xX]([0-9a-fA-F_]+)|0[bB]([01_]+)|0[oO]?([0-7_]+)|([0-9][0-9_]*))$/;

/**
 * A whole number in Go's literal forms (decimal, 0x, 0b, 0o, underscores), within [min, max]; both
 * bounds are safe integers. `unit` is what it counts, for the message.
 */
export function parseInteger(text: string, min: number, max: number, unit?: string): number {
  const failure = (): ValueError =>
    new ValueError(
      `parse error (expected a whole number${unit === undefined ? "" : `; unit: ${unit}`})`,
    );
  const match = INTEGER.exec(text);
  if (match === null || (match[1] !== "" && min >= 0)) throw failure();
  const [, sign, hex, binary, octal, decimal] = match;
  const digits = (hex ?? binary ?? octal ?? decimal)!.replaceAll("_", "");
  const magnitude = Number.parseInt(
    digits,
    hex !== undefined ? 16 : binary !== undefined ? 2 : octal !== undefined ? 8 : 10,
  );
  const value = sign === "-" ? -magnitude : magnitude;
  if (Number.isNaN(value)) throw failure();
  return inRange(value, min, max);
}

/** `value`, if it is within [min, max]; else a ValueError that tells the bounds. */
export function inRange(value: number, min: number, max: number): number {
  if (value < min || value > max)
    throw new ValueError(`value out of range (expected ${min} to ${max})`);
  return value;
}

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

/**
 * A duration in Go's form ("300ms", "1h30m", "-1.5s", "0") in milliseconds, with a fraction below
 * one millisecond.
 */
export function parseDurationMs(text: string): number {
  const failure = `time: invalid duration ${quote(text)} (expected one such as 300ms, 10s or 1h30m)`;
  const signed = /^([+-]?)(.*)$/s.exec(text)!;
  const body = signed[2];
  if (body === "0") return 0;
  const part = /([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([^0-9.]*)/gy;
  let totalMs = 0;
  let end = 0;
  for (let match = part.exec(body); match !== null; match = part.exec(body)) {
    const unit = match[2];
    if (unit === "")
      throw new ValueError(
        `time: missing unit in duration ${quote(text)} (expected one such as 300ms, 10s or 1h30m)`,
      );
    const unitMs = UNIT_MS[unit];
    if (unitMs === undefined)
      throw new ValueError(
        `time: unknown unit ${quote(unit)} in duration ${quote(text)} (expected ns, us, ms, s, m or h)`,
      );
    totalMs += Number(match[1]) * unitMs;
    end = part.lastIndex;
  }
  if (end === 0 || end !== body.length || totalMs > MAX_DURATION_MS) throw new ValueError(failure);
  return signed[1] === "-" ? -totalMs : totalMs;
}

/**
 * A duration as Go prints it: "0s", "300ms", "1m0s", "2h0m0s". Fractions below a nanosecond are
 * dropped.
 */
export function formatDuration(durationMs: number): string {
  if (durationMs === 0) return "0s";
  const sign = durationMs < 0 ? "-" : "";
  const ms = Math.abs(durationMs);
  if (ms < 1e-3) return `${sign}${Math.round(ms * 1e6)}ns`;
  if (ms < 1) return `${sign}${decimal(ms * 1e3)}µs`;
  if (ms < 1000) return `${sign}${decimal(ms)}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = decimal((ms % 60_000) / 1000);
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}s`;
  if (minutes > 0) return `${sign}${minutes}m${seconds}s`;
  return `${sign}${seconds}s`;
}

function decimal(value: number): string {
  return String(Number(value.toFixed(9)));
}

/** A text in double quotes with Go's %q escapes for the characters that matter in one line. */
export function quote(text: string): string {
  return JSON.stringify(text);
}

/** Comma-separated texts; an empty text is an empty list. Order and repetitions stay. */
export function parseList(text: string): readonly string[] {
  return text === "" ? [] : text.split(",");
}

/** Comma-separated texts as etcd's unique string flags keep them: sorted, each once. */
export function parseUniqueList(text: string): readonly string[] {
  return [...new Set(parseList(text))].sort();
}
