/**
 * Functions of texts (cel-go: ext/strings.go, formatting.go; apiserver: pkg/cel/library/regex.go).
 */
import { canonicalJson } from "@quorate/kube-storage";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import type { Patterns } from "../../validation/patterns.ts";
import { compilePattern } from "../base/pattern-cost.ts";
import type { Environment } from "../lang/environment.ts";
import { shownDouble } from "../lang/standard.ts";
import { shownType } from "../lang/types.ts";
import {
  charCount,
  Duration,
  EvaluationError,
  shownDuration,
  shownTimestamp,
  Timestamp,
  TypeValue,
  Uint,
} from "../lang/values.ts";

/** Longer results are refused. */
const MAX_RESULT_LENGTH = 3 * 1024 * 1024;

export function registerStrings(environment: Environment, patterns: Patterns): void {
  const findAll = (text: string, source: string, limit: bigint) =>
    compilePattern(patterns, source).find(text, Number(limit));
  environment
    .function(
      "string.find(string): string",
      (text: string, source: string) => findAll(text, source, 1n)[0] ?? "",
    )
    .function("string.findAll(string): list<string>", (text: string, source: string) =>
      findAll(text, source, -1n),
    )
    .function("string.findAll(string, int): list<string>", findAll)
    .function("string.charAt(int): string", charAt)
    .function("string.indexOf(string): int", (text: string, part: string) =>
      indexOf(text, part, 0n),
    )
    .function("string.indexOf(string, int): int", indexOf)
    .function("string.lastIndexOf(string): int", (text: string, part: string) =>
      lastIndexOf(text, part, undefined),
    )
    .function("string.lastIndexOf(string, int): int", lastIndexOf)
    .function("string.lowerAscii(): string", (text: string) =>
      text.replace(/[A-Z]+/g, (part) => part.toLowerCase()),
    )
    .function("string.upperAscii(): string", (text: string) =>
      text.replace(/[a-z]+/g, (part) => part.toUpperCase()),
    )
    .function("string.replace(string, string): string", (text: string, from, to) =>
      replaced(text, from, to, -1n),
    )
    .function("string.replace(string, string, int): string", replaced)
    .function("string.split(string): list<string>", (text: string, by: string) =>
      split(text, by, -1n),
    )
    .function("string.split(string, int): list<string>", split)
    .function("string.substring(int): string", (text: string, start: bigint) =>
      substring(text, start, undefined),
    )
    .function("string.substring(int, int): string", substring)
    .function("string.trim(): string", trimmed)
    .function("string.reverse(): string", (text: string) => [...text].reverse().join(""))
    .function("list<string>.join(): string", (texts: readonly string[]) => texts.join(""))
    .function("list<string>.join(string): string", (texts: readonly string[], by: string) =>
      texts.join(by),
    )
    .function("strings.quote(string): string", quoted)
    .function("string.format(list<dyn>): string", format);
}

/** Unicode's, as Go trims: U+0085, but not U+FEFF. */
const SPACE = /\p{White_Space}/u;

function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && SPACE.test(text.charAt(start))) start++;
  while (end > start && SPACE.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

function outOfRange(index: bigint): EvaluationError {
  return new EvaluationError(`index out of range: ${index}`);
}

/** The place in JavaScript's text of a character; throws where there is none. */
function placeOf(text: string, index: bigint): number {
  if (index < 0n || index > text.length) throw outOfRange(index);
  let at = 0;
  for (let left = index; left > 0n; left--) {
    if (at >= text.length) throw outOfRange(index);
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return at;
}

function charsBefore(text: string, at: number): bigint {
  return at < 0 ? -1n : BigInt(charCount(text.slice(0, at)));
}

function charAt(text: string, index: bigint): string {
  const code = text.codePointAt(placeOf(text, index));
  return code === undefined ? "" : String.fromCodePoint(code);
}

function indexOf(text: string, part: string, from: bigint): bigint {
  if (part === "") return from;
  return charsBefore(text, text.indexOf(part, placeOf(text, from)));
}

function lastIndexOf(text: string, part: string, from: bigint | undefined): bigint {
  const end = from === undefined ? text.length : placeOf(text, from);
  if (part === "") return from ?? charsBefore(text, end);
  return charsBefore(text, text.lastIndexOf(part, end));
}

function substring(text: string, start: bigint, end: bigint | undefined): string {
  const first = placeOf(text, start);
  const last = end === undefined ? text.length : placeOf(text, end);
  if (first > last)
    throw new EvaluationError(`invalid substring range. start: ${start}, end: ${end}`);
  return text.slice(first, last);
}

function split(text: string, by: string, limit: bigint): string[] {
  if (limit === 0n) return [];
  const parts = by === "" ? [...text] : text.split(by);
  if (limit < 0n || parts.length <= limit) return parts;
  const kept = Number(limit) - 1;
  return [...parts.slice(0, kept), parts.slice(kept).join(by)];
}

function replaced(text: string, from: string, to: string, limit: bigint): string {
  // Between and around all characters.
  if (from === "") {
    const chars = [...text];
    const count = limit < 0n ? chars.length + 1 : Math.min(Number(limit), chars.length + 1);
    checkLength(text.length + count * to.length);
    const head = chars.map((char, i) => (i < count ? to + char : char)).join("");
    return count > chars.length ? head + to : head;
  }
  const parts = text.split(from);
  const count = limit < 0n ? parts.length - 1 : Math.min(Number(limit), parts.length - 1);
  checkLength(text.length + count * (to.length - from.length));
  const head = parts.slice(0, count + 1).join(to);
  const tail = parts.slice(count + 1);
  return tail.length === 0 ? head : [head, ...tail].join(from);
}

function checkLength(length: number): void {
  if (length > MAX_RESULT_LENGTH) throw new EvaluationError("the text is too long");
}

const QUOTED: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are escaped
  const escaped = text.toWellFormed().replace(/[\x07-\r\\"]/g, (char) => QUOTED[char] ?? char);
  return `"${escaped}"`;
}

/** "%s", "%d", "%f", "%e", "%x", "%X", "%o", "%b" and "%%". */
function format(template: string, args: readonly unknown[]): string {
  let next = 0;
  const clause = /%(?:\.(\d+))?([a-zA-Z%])?/g;
  const text = template.replace(clause, (_all, precision, verb?: string) => {
    if (verb === "%") return "%";
    if (verb === undefined)
      throw new EvaluationError("could not parse formatting clause: unexpected end of string");
    if (next >= args.length) throw new EvaluationError(`index ${next} out of range`);
    return formatted(verb, args[next++], precision);
  });
  checkLength(text.length);
  return text;
}

const RADIX: Readonly<Record<string, number>> = { x: 16, X: 16, o: 8, b: 2 };

function formatted(verb: string, value: unknown, precision: string | undefined): string {
  const places = Math.min(Number(precision ?? 6), 100);
  const plain = value instanceof Uint ? value.value : value;
  const isNumber = typeof plain === "number" || typeof plain === "bigint";
  if (typeof plain === "number" && !Number.isFinite(plain) && "sdfe".includes(verb))
    return Number.isNaN(plain) ? "NaN" : plain > 0 ? "Infinity" : "-Infinity";
  switch (verb) {
    case "s":
      return shown(value);
    case "d":
      if (isNumber) return typeof plain === "number" ? shownDouble(plain) : String(plain);
      break;
    case "f":
      if (isNumber) return Number(plain).toFixed(places);
      break;
    case "e":
      if (isNumber)
        return Number(plain)
          .toExponential(places)
          .replace(/e([+-])(\d)$/, "e$10$2");
      break;
    default:
      if (verb in RADIX) return radixText(verb, plain);
      throw new EvaluationError(
        `could not parse formatting clause: unrecognized formatting clause "${verb}"`,
      );
  }
  throw new EvaluationError(`error during formatting: no such overload`);
}

function radixText(verb: string, value: unknown): string {
  const upper = (text: string) => (verb === "X" ? text.toUpperCase() : text);
  if (typeof value === "bigint") return upper(value.toString(RADIX[verb]));
  if (verb === "b" && typeof value === "boolean") return value ? "1" : "0";
  const bytes = typeof value === "string" ? fromUtf8(value) : value;
  if (verb.toLowerCase() !== "x" || !(bytes instanceof Uint8Array))
    throw new EvaluationError("error during formatting: no such overload");
  return upper(Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""));
}

function shown(value: unknown): string {
  if (value instanceof Timestamp) return shownTimestamp(value);
  if (value instanceof Duration) return shownDuration(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof TypeValue) return shownType(value.type);
  if (value instanceof Uint8Array) return toUtf8(value);
  if (typeof value === "number") return shownDouble(value);
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  if (value instanceof Map) {
    const entries = [...value].map(([key, one]) => `${shown(key)}: ${shown(one)}`);
    return `{${entries.sort().join(", ")}}`;
  }
  if (typeof value === "object" && value !== null) return canonicalJson(value);
  return String(value);
}
