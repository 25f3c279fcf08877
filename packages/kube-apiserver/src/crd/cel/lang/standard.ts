/** The standard functions of CEL (cel-spec: doc/langdef.md; cel-go: common/stdlib). */
import { fromUtf8, toUtf8 } from "@quorate/proto";
import type { Patterns } from "../../validation/patterns.ts";
import { compilePattern } from "../base/pattern-cost.ts";
import type { Environment } from "./environment.ts";
import { dateIn } from "./time-zones.ts";
import {
  charCount,
  compare,
  compareBytes,
  Duration,
  duration,
  EvaluationError,
  equals,
  mapKey,
  parseDuration,
  parseTimestamp,
  shownDuration,
  shownTimestamp,
  type Timestamp,
  TypeValue,
  timestamp,
  typeOfValue,
  Uint,
} from "./values.ts";

const TIME = "google.protobuf.Timestamp";
const SPAN = "google.protobuf.Duration";

const MAX_INT = 2n ** 63n - 1n;
const MIN_INT = -(2n ** 63n);
const MAX_UINT = 2n ** 64n - 1n;

function int(value: bigint, what = "integer overflow"): bigint {
  if (value > MAX_INT || value < MIN_INT) throw new EvaluationError(what);
  return value;
}

function uint(value: bigint, what = "unsigned integer overflow"): Uint {
  if (value > MAX_UINT || value < 0n) throw new EvaluationError(what);
  return new Uint(value);
}

export function registerStandard(environment: Environment, patterns: Patterns): void {
  registerComparisons(environment);
  registerArithmetic(environment);
  registerConversions(environment);
  registerTimes(environment);
  const size = (value: string | { length: number }) =>
    BigInt(typeof value === "string" ? charCount(value) : value.length);
  for (const type of ["string", "bytes", "list<A>"])
    environment.function(`size(${type}): int`, size).function(`${type}.size(): int`, size);
  const mapSize = (map: ReadonlyMap<unknown, unknown>) => BigInt(map.size);
  environment
    .function("size(map<A, B>): int", mapSize)
    .function("map<A, B>.size(): int", mapSize)
    .function("string.contains(string): bool", (text: string, part: string) => text.includes(part))
    .function("string.startsWith(string): bool", (text: string, part: string) =>
      text.startsWith(part),
    )
    .function("string.endsWith(string): bool", (text: string, part: string) => text.endsWith(part))
    .function("string.matches(string): bool", (text: string, source: string) =>
      compilePattern(patterns, source).test(text),
    )
    .function("matches(string, string): bool", (text: string, source: string) =>
      compilePattern(patterns, source).test(text),
    );
}

function registerComparisons(environment: Environment): void {
  // The evaluator has its own ways for these; they are declared for the checker.
  const own = (): never => {
    throw new EvaluationError("no such overload");
  };
  environment
    .function("_?_:_(bool, A, A): A", own)
    .function("_&&_(bool, bool): bool", own)
    .function("_||_(bool, bool): bool", own)
    .function("@not_strictly_false(bool): bool", own)
    .function("_[_](list<A>, int): A", own)
    .function("_[_](map<A, B>, A): B", own)
    .function("_[_](optional<list<A>>, int): optional<A>", own)
    .function("_[_](optional<map<A, B>>, A): optional<B>", own)
    .function("_[?_](list<A>, int): optional<A>", own)
    .function("_[?_](optional<list<A>>, int): optional<A>", own)
    .function("_[?_](map<A, B>, A): optional<B>", own)
    .function("_[?_](optional<map<A, B>>, A): optional<B>", own)
    .function("!_(bool): bool", (value: boolean) => !value)
    .function("_==_(A, A): bool", equals)
    .function("_!=_(A, A): bool", (a: unknown, b: unknown) => !equals(a, b))
    .function("@in(A, list<A>): bool", (item: unknown, list: readonly unknown[]) =>
      list.some((one) => equals(one, item)),
    )
    .function("@in(A, map<A, B>): bool", (key: unknown, map: ReadonlyMap<unknown, unknown>) =>
      map.has(mapKey(key)),
    );
  const orders: Readonly<Record<string, (order: number) => boolean>> = {
    "<": (order) => order < 0,
    "<=": (order) => order <= 0,
    ">": (order) => order > 0,
    ">=": (order) => order >= 0,
  };
  const numbers = ["int", "uint", "double"];
  const pairs = [
    ...["bool", "string", "bytes", TIME, SPAN, ...numbers].map((one) => [one, one]),
    ...numbers.flatMap((one) => numbers.filter((it) => it !== one).map((it) => [one, it])),
  ];
  for (const [mark, holds] of Object.entries(orders))
    for (const [left, right] of pairs)
      environment.function(`_${mark}_(${left}, ${right}): bool`, (a: unknown, b: unknown) =>
        holds(compare(a, b)),
      );
}

function registerArithmetic(environment: Environment): void {
  const nonZero = (value: bigint, what: string): bigint => {
    if (value === 0n) throw new EvaluationError(what);
    return value;
  };
  const divided = (b: bigint) => nonZero(b, "division by zero");
  const modulus = (b: bigint) => nonZero(b, "modulus by zero");
  environment
    .function("_+_(int, int): int", (a: bigint, b: bigint) => int(a + b))
    .function("_-_(int, int): int", (a: bigint, b: bigint) => int(a - b))
    .function("_*_(int, int): int", (a: bigint, b: bigint) => int(a * b))
    .function("_/_(int, int): int", (a: bigint, b: bigint) => int(a / divided(b)))
    .function("_%_(int, int): int", (a: bigint, b: bigint) => {
      if (a === MIN_INT && b === -1n) throw new EvaluationError("integer overflow");
      return a % modulus(b);
    })
    .function("-_(int): int", (a: bigint) => int(-a))
    .function("_+_(uint, uint): uint", (a: Uint, b: Uint) => uint(a.value + b.value))
    .function("_-_(uint, uint): uint", (a: Uint, b: Uint) => uint(a.value - b.value))
    .function("_*_(uint, uint): uint", (a: Uint, b: Uint) => uint(a.value * b.value))
    .function("_/_(uint, uint): uint", (a: Uint, b: Uint) => uint(a.value / divided(b.value)))
    .function("_%_(uint, uint): uint", (a: Uint, b: Uint) => uint(a.value % modulus(b.value)))
    .function("_+_(double, double): double", (a: number, b: number) => a + b)
    .function("_-_(double, double): double", (a: number, b: number) => a - b)
    .function("_*_(double, double): double", (a: number, b: number) => a * b)
    .function("_/_(double, double): double", (a: number, b: number) => a / b)
    .function("-_(double): double", (a: number) => -a)
    .function("_+_(string, string): string", (a: string, b: string) => a + b)
    .function("_+_(bytes, bytes): bytes", (a: Uint8Array, b: Uint8Array) => {
      const whole = new Uint8Array(a.length + b.length);
      whole.set(a);
      whole.set(b, a.length);
      return whole;
    })
    .function("_+_(list<A>, list<A>): list<A>", (a: readonly unknown[], b: readonly unknown[]) => [
      ...a,
      ...b,
    ])
    .function(`_+_(${TIME}, ${SPAN}): ${TIME}`, (a: Timestamp, b: Duration) =>
      timestamp(a.ns + b.ns),
    )
    .function(`_+_(${SPAN}, ${TIME}): ${TIME}`, (a: Duration, b: Timestamp) =>
      timestamp(a.ns + b.ns),
    )
    .function(`_+_(${SPAN}, ${SPAN}): ${SPAN}`, (a: Duration, b: Duration) => duration(a.ns + b.ns))
    .function(
      `_-_(${TIME}, ${TIME}): ${SPAN}`,
      (a: Timestamp, b: Timestamp) => new Duration(int(a.ns - b.ns)),
    )
    .function(`_-_(${TIME}, ${SPAN}): ${TIME}`, (a: Timestamp, b: Duration) =>
      timestamp(a.ns - b.ns),
    )
    .function(`_-_(${SPAN}, ${SPAN}): ${SPAN}`, (a: Duration, b: Duration) =>
      duration(a.ns - b.ns),
    );
}

const NS = 1_000_000_000n;

function registerConversions(environment: Environment): void {
  const same = (value: unknown) => value;
  for (const type of ["bool", "bytes", "double", "int", "string", "uint"])
    environment.function(`${type}(${type}): ${type}`, same);
  environment
    .function("dyn(A): dyn", same)
    .function("type(A): type<A>", (value: unknown) => new TypeValue(typeOfValue(value)))
    .function("bool(string): bool", (text: string) => {
      if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
      if (["0", "f", "F", "false", "FALSE", "False"].includes(text)) return false;
      throw conversion("bool");
    })
    .function("bytes(string): bytes", (text: string) => fromUtf8(text))
    .function("string(bytes): string", (bytes: Uint8Array) => {
      const text = toUtf8(bytes);
      // What is no UTF-8 becomes another character.
      if (compareBytes(fromUtf8(text), bytes) === 0) return text;
      throw new EvaluationError("invalid UTF-8 in bytes, cannot convert to string");
    })
    .function("string(bool): string", String)
    .function("string(int): string", String)
    .function("string(uint): string", ({ value }: Uint) => String(value))
    .function("string(double): string", shownDouble)
    .function(`string(${TIME}): string`, shownTimestamp)
    .function(`string(${SPAN}): string`, shownDuration)
    .function("double(int): double", Number)
    .function("double(uint): double", ({ value }: Uint) => Number(value))
    .function("double(string): double", (text: string) => {
      const isNumber = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text);
      if (isNumber) return Number(text);
      const named = NAMED_DOUBLES.get(text.replace(/^[+-]/, "").toLowerCase());
      if (named === undefined) throw conversion("double");
      return text.startsWith("-") ? -named : named;
    })
    .function("int(uint): int", ({ value }: Uint) => int(value))
    .function("int(double): int", (value: number) => {
      // 2^63 itself is no int, and doubles near it are too far from each other.
      if (!(value > -(2 ** 63) && value < 2 ** 63)) throw new EvaluationError("integer overflow");
      return BigInt(Math.trunc(value));
    })
    .function("int(string): int", (text: string) => int(parsedInt(text, "int")))
    .function(`int(${TIME}): int`, ({ ns }: Timestamp) => ns / NS - (ns % NS < 0n ? 1n : 0n))
    .function(`int(${SPAN}): int`, ({ ns }: Duration) => ns)
    .function("uint(int): uint", (value: bigint) => uint(value))
    .function("uint(double): uint", (value: number) => {
      if (!(value > -1 && value < 2 ** 64)) throw new EvaluationError("unsigned integer overflow");
      return new Uint(BigInt(Math.trunc(value)));
    })
    .function("uint(string): uint", (text: string) => {
      if (!/^\+?\d+$/.test(text)) throw conversion("uint");
      return uint(parsedInt(text, "uint"));
    })
    .function(`timestamp(${TIME}): ${TIME}`, same)
    .function(`timestamp(int): ${TIME}`, (seconds: bigint) => timestamp(seconds * NS))
    .function(`timestamp(string): ${TIME}`, (text: string) => {
      const time = parseTimestamp(text);
      if (time === undefined) throw conversion("google.protobuf.Timestamp");
      return timestamp(time.ns);
    })
    .function(`duration(${SPAN}): ${SPAN}`, same)
    .function(`duration(int): ${SPAN}`, (ns: bigint) => duration(ns))
    .function(`duration(string): ${SPAN}`, (text: string) => {
      const span = parseDuration(text);
      if (span === undefined) throw conversion("google.protobuf.Duration");
      return span;
    });
}

const NAMED_DOUBLES: ReadonlyMap<string, number> = new Map([
  ["inf", Number.POSITIVE_INFINITY],
  ["infinity", Number.POSITIVE_INFINITY],
  ["nan", Number.NaN],
]);

function conversion(type: string): EvaluationError {
  return new EvaluationError(`type conversion error from 'string' to '${type}'`);
}

function parsedInt(text: string, type: string): bigint {
  if (!/^[+-]?\d{1,30}$/.test(text)) throw conversion(type);
  return BigInt(text.replace("+", ""));
}

/** As Go's 'g' with the shortest precision. */
export function shownDouble(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (Object.is(value, -0)) return "-0";
  const exponent = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  if (exponent < -4 || exponent >= 21)
    return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
  return String(value);
}

/** Fields of times, with or without a time zone. */
const FIELDS: Readonly<Record<string, (date: Date) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDate: (date) => date.getUTCDate(),
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: (date) => {
    const year = new Date(date);
    year.setUTCMonth(0, 1);
    return Math.round((date.getTime() - year.getTime()) / 86_400_000);
  },
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
};

const SPANS: Readonly<Record<string, bigint>> = {
  getHours: 3600n * NS,
  getMinutes: 60n * NS,
  getSeconds: NS,
  getMilliseconds: 1_000_000n,
};

function registerTimes(environment: Environment): void {
  for (const [name, read] of Object.entries(FIELDS)) {
    environment
      .function(`${TIME}.${name}(): int`, (time: Timestamp) => BigInt(read(dateIn(time, "UTC"))))
      .function(`${TIME}.${name}(string): int`, (time: Timestamp, zone: string) =>
        BigInt(read(dateIn(time, zone))),
      );
  }
  for (const [name, unit] of Object.entries(SPANS))
    environment.function(`${SPAN}.${name}(): int`, ({ ns }: Duration) =>
      name === "getMilliseconds" ? (ns % NS) / unit : ns / unit,
    );
}
