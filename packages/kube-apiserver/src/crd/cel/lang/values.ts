/**
 * CEL's values. Texts, booleans, null and doubles are JavaScript's; an int is a bigint, bytes are a
 * Uint8Array, a list is an array, a map is a Map. The other types have a class.
 *
 * Numbers of all types are equal where their values are; so are keys of maps, which are kept as
 * bigint where they are whole numbers (cel-go: common/types).
 */

import { trimEndOf } from "@quorate/host";
import { compareUtf8 } from "@quorate/kube-storage";
import { CodedError } from "@quorate/proto";
import { budget } from "../base/budget.ts";
import type { Literal } from "./ast.ts";
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  optionalOf,
  STRING,
  TIMESTAMP,
  type Type,
  typeOf,
  UINT,
} from "./types.ts";

/** An evaluation that failed. The text is cel-go's. */
export class EvaluationError extends CodedError<"EvaluationFailed"> {
  constructor(message: string) {
    super("EvaluationError", "EvaluationFailed", message);
  }
}

export function noSuchOverload(): EvaluationError {
  return new EvaluationError("no such overload");
}

export class Uint {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

/** Nanoseconds since 1970, or of a duration. */
abstract class Nanoseconds {
  readonly ns: bigint;

  constructor(ns: bigint) {
    this.ns = ns;
  }
}

export class Timestamp extends Nanoseconds {
  readonly isTimestamp = true;
}

export class Duration extends Nanoseconds {
  readonly isDuration = true;
}

/** A type as a value: type(1) == int. */
export class TypeValue {
  readonly type: Type;

  constructor(type: Type) {
    this.type = type;
  }
}

export class Optional {
  static readonly none: Optional = new Optional(undefined);
  /** Undefined for none. */
  readonly value: unknown;

  private constructor(value: unknown) {
    this.value = value;
  }

  static of(value: unknown): Optional {
    return new Optional(value);
  }

  get isPresent(): boolean {
    return this.value !== undefined;
  }
}

/** A value of a type that a library adds. */
export interface OpaqueValue {
  readonly celType: Type;
  equals(other: unknown): boolean;
}

/** A value with named fields: an object of a schema. */
export abstract class StructValue {
  abstract readonly celType: Type;
  /** Undefined where the field is not there. */
  abstract field(name: string): unknown;
  abstract equals(other: unknown): boolean;
}

function isOpaque(value: unknown): value is OpaqueValue {
  return typeof value === "object" && value !== null && "celType" in value;
}

/** The value that a literal of an expression stands for. */
export function literalValue(value: Literal): unknown {
  const isUint = typeof value === "object" && value !== null && "uint" in value;
  return isUint ? new Uint(value.uint) : value;
}

/** The type of a value, as type() tells it. */
export function typeOfValue(value: unknown): Type {
  switch (typeof value) {
    case "boolean":
      return BOOL;
    case "bigint":
      return INT;
    case "number":
      return DOUBLE;
    case "string":
      return STRING;
  }
  if (value === null) return NULL;
  if (Array.isArray(value)) return listOf(DYN);
  if (value instanceof Map) return mapOf(DYN, DYN);
  if (value instanceof Uint8Array) return BYTES;
  if (value instanceof Uint) return UINT;
  if (value instanceof Timestamp) return TIMESTAMP;
  if (value instanceof Duration) return DURATION;
  if (value instanceof Optional) return optionalOf(DYN);
  if (value instanceof TypeValue) return typeOf(DYN);
  return isOpaque(value) ? value.celType : DYN;
}

/**
 * Whether an overload for the type takes the value.
 * @param isDeep whether the elements of a list decide, too, as between overloads of sum()
 */
export function fits(value: unknown, type: Type, isDeep: boolean): boolean {
  if (type.kind === "dyn" || type.kind === "param") return true;
  const own = typeOfValue(value);
  if (own.kind !== type.kind) return false;
  if ((type.kind === "opaque" || type.kind === "struct") && own.name !== type.name) return false;
  const [item] = type.params;
  if (type.kind !== "list" || !isDeep || item === undefined) return true;
  return (value as readonly unknown[]).every((one) => fits(one, item, true));
}

/** The number of a number, as one that compares with those of other types; undefined for others. */
function numeric(value: unknown): bigint | number | undefined {
  if (typeof value === "bigint" || typeof value === "number") return value;
  return value instanceof Uint ? value.value : undefined;
}

/** As a key of a map. Undefined for a value that can be none. */
export function mapKey(value: unknown): unknown {
  if (typeof value === "string" || typeof value === "boolean" || typeof value === "bigint")
    return value;
  if (value instanceof Uint) return value.value;
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : value;
  return undefined;
}

export function equals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  const [left, right] = [numeric(a), numeric(b)];
  if (left !== undefined) return right !== undefined && compareNumbers(left, right) === 0;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((one, i) => equals(one, b[i]));
  if (a instanceof Map) return b instanceof Map && equalMaps(a, b);
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0;
  if (a instanceof Timestamp) return b instanceof Timestamp && a.ns === b.ns;
  if (a instanceof Duration) return b instanceof Duration && a.ns === b.ns;
  if (a instanceof TypeValue)
    return b instanceof TypeValue && a.type.kind === b.type.kind && a.type.name === b.type.name;
  if (a instanceof Optional)
    return b instanceof Optional && a.isPresent === b.isPresent && equals(a.value, b.value);
  return isOpaque(a) && a.equals(b);
}

function equalMaps(a: ReadonlyMap<unknown, unknown>, b: ReadonlyMap<unknown, unknown>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (!b.has(key) || !equals(value, b.get(key))) return false;
  return true;
}

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** A whole number beside a double is one; NaN compares with nothing. */
function compareNumbers(a: bigint | number, b: bigint | number): number {
  const [left, right] = typeof a === typeof b ? [a, b] : [Number(a), Number(b)];
  if (Number.isNaN(left) || Number.isNaN(right)) return Number.NaN;
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Less than 0 where `a` is before `b`; NaN where they do not compare. Throws EvaluationError. */
export function compare(a: unknown, b: unknown): number {
  const [left, right] = [numeric(a), numeric(b)];
  if (left !== undefined && right !== undefined) return compareNumbers(left, right);
  if (typeof a === "string" && typeof b === "string") return compareUtf8(a, b);
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
  const same =
    (a instanceof Timestamp && b instanceof Timestamp) ||
    (a instanceof Duration && b instanceof Duration);
  if (!same) throw noSuchOverload();
  const [x, y] = [(a as Nanoseconds).ns, (b as Nanoseconds).ns];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** The text that was counted last: a loop asks for the same one again and again. */
let counted = { text: "", count: 0 };

/** The characters of a text: code points. Throws BudgetError where too many are counted. */
export function charCount(text: string): number {
  if (text.length < 64) return countOf(text);
  if (text !== counted.text) {
    budget.walk(text.length);
    counted = { text, count: countOf(text) };
  }
  return counted.count;
}

function countOf(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0xd800 && code < 0xdc00) {
      count--;
      i++;
    }
  }
  return count;
}

/** What costs count: characters, elements; 1 for values without a size. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return charCount(value);
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length;
  if (value instanceof Map) return value.size;
  if (value instanceof Optional && value.isPresent) return sizeOf(value.value);
  if (typeof value === "object" && value !== null && "celSize" in value)
    return value.celSize as number;
  return 1;
}

const NS_PER_SECOND = 1_000_000_000n;
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;
const MAX_DURATION = 2n ** 63n - 1n;

/** Throws EvaluationError for a time before the year 1 or after 9999. */
export function timestamp(ns: bigint): Timestamp {
  const second = floorDiv(ns, NS_PER_SECOND);
  if (second < FIRST_SECOND || second > LAST_SECOND)
    throw new EvaluationError("timestamp overflow");
  return new Timestamp(ns);
}

export function duration(ns: bigint): Duration {
  if (ns > MAX_DURATION || ns < -MAX_DURATION - 1n) throw new EvaluationError("duration overflow");
  return new Duration(ns);
}

export function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n ? quotient - 1n : quotient;
}

const RFC3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)$/;

/** Undefined for a text that is no RFC 3339 time. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const parts = RFC3339.exec(text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = "", zone = "Z"] = parts;
  if (year === "0000") return undefined;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  date.setUTCHours(Number(hour), Number(minute), Number(second));
  const shown = date.toISOString().replace(/^\+0*(\d{4})/, "$1");
  if (!shown.startsWith(`${year}-${month}-${day}T${hour}:${minute}:${second}`)) return undefined;
  const offset = zoneOffset(zone) ?? 0n;
  const ns = BigInt(fraction.padEnd(9, "0"));
  return new Timestamp((BigInt(date.getTime() / 1000) - offset) * NS_PER_SECOND + ns);
}

/** Seconds of "+05:30"; undefined for another form. */
export function zoneOffset(zone: string): bigint | undefined {
  if (/^[Zz]$/.test(zone)) return 0n;
  const parts = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (parts === null) return undefined;
  const seconds = BigInt(parts[2] as string) * 3600n + BigInt(parts[3] as string) * 60n;
  return parts[1] === "-" ? -seconds : seconds;
}

export function shownTimestamp({ ns }: Timestamp): string {
  const second = floorDiv(ns, NS_PER_SECOND);
  const date = new Date(Number(second) * 1000).toISOString().slice(0, -5);
  return `${date}${shownFraction(ns - second * NS_PER_SECOND)}Z`;
}

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  µs: 1000n,
  μs: 1000n,
  ms: 1_000_000n,
  s: NS_PER_SECOND,
  m: 60n * NS_PER_SECOND,
  h: 3600n * NS_PER_SECOND,
};
const DURATION_PART = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/y;

/** "1h30m", "-1.5s" as Go reads them. Undefined for another text. */
export function parseDuration(text: string): Duration | undefined {
  const sign = /^[+-]/.exec(text)?.[0] ?? "";
  let at = sign.length;
  if (text.slice(at) === "0") return new Duration(0n);
  if (at >= text.length) return undefined;
  let ns = 0n;
  while (at < text.length) {
    DURATION_PART.lastIndex = at;
    const part = DURATION_PART.exec(text);
    if (part === null) return undefined;
    const [all, whole = "", fraction = "", unit = ""] = part;
    if (whole === "" && fraction === "") return undefined;
    const factor = UNITS[unit] as bigint;
    ns += BigInt(whole || "0") * factor;
    const digits = fraction.slice(0, 18);
    if (digits !== "") ns += (BigInt(digits) * factor) / 10n ** BigInt(digits.length);
    at += all.length;
  }
  if (ns > MAX_DURATION + 1n) return undefined;
  return duration(sign === "-" ? -ns : ns);
}

/** Seconds: "1.5s". */
export function shownDuration({ ns }: Duration): string {
  const sign = ns < 0n ? "-" : "";
  const whole = ns < 0n ? -ns : ns;
  return `${sign}${whole / NS_PER_SECOND}${shownFraction(whole % NS_PER_SECOND)}s`;
}

/** Of nanoseconds below a second: ".5", or nothing. */
function shownFraction(ns: bigint): string {
  const digits = trimEndOf(String(ns).padStart(9, "0"), "0");
  return digits === "" ? "" : `.${digits}`;
}
