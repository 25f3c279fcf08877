/**
 * The values that options take, read as Go's flag package and etcd's config file read them. Parsers
 * throw ValueError with a text that the caller prefixes with the name of the flag, variable or key.
 */

import { type DurationProblem, parseDuration } from "@quorate/host";
import { CodedError, goBool } from "@quorate/proto";

/** A text that is not a value of the wanted type. */
export class ValueError extends CodedError<"BadValue"> {
  constructor(message: string) {
    super("ValueError", "BadValue", message);
  }
}

/** A boolean in the spellings of Go's strconv.ParseBool. */
export function parseBool(text: string): boolean {
  const value = goBool(text);
  if (value === undefined) throw new ValueError("parse error (expected true or false)");
  return value;
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
  const [, sign, hex, binary, octal, decimal = ""] = match;
  const digits = (hex ?? binary ?? octal ?? decimal).replaceAll("_", "");
  const magnitude = Number.parseInt(
    digits,
    hex !== undefined ? 16 : binary !== undefined ? 2 : octal !== undefined ? 8 : 10,
  );
  const value = sign === "-" ? -magnitude : magnitude;
  if (Number.isNaN(value)) throw failure();
  return inRange(value, min, max);
}

/** `value`, if it is within [min, max]; else a ValueError that states the bounds. */
export function inRange(value: number, min: number, max: number): number {
  if (value < min || value > max)
    throw new ValueError(`value out of range (expected ${min} to ${max})`);
  return value;
}

/** What the message of each problem adds to Go's text. */
const EXPECTED: Readonly<Record<DurationProblem["code"], string>> = {
  Invalid: "one such as 300ms, 10s or 1h30m",
  MissingUnit: "one such as 300ms, 10s or 1h30m",
  UnknownUnit: "ns, us, ms, s, m or h",
};

/** A duration in Go's form in milliseconds, with a fraction below one millisecond. */
export function parseDurationMs(text: string): number {
  const result = parseDuration(text);
  if (typeof result === "number") return result;
  throw new ValueError(`${result.message} (expected ${EXPECTED[result.code]})`);
}

/** Comma-separated texts; an empty text is an empty list. Order and repetitions stay. */
export function parseList(text: string): readonly string[] {
  return text === "" ? [] : text.split(",");
}

/** Comma-separated texts as etcd's unique string flags keep them: sorted, each once. */
export function parseUniqueList(text: string): readonly string[] {
  return [...new Set(parseList(text))].sort();
}
