/** Functions of strings: find, findAll, charAt, replace, format; conversions of times. */
import { canonicalJson } from "@quorate/kube-storage";
import type { Patterns } from "../../validation/patterns.ts";
import { budget } from "../base/budget.ts";
import { compilePattern } from "../base/pattern-cost.ts";
import type { CelEnvironment } from "../library.ts";

/** Longer results are refused. */
const MAX_RESULT_LENGTH = 3 * 1024 * 1024;

const TIMESTAMP = "google.protobuf.Timestamp";

export function registerStrings(environment: CelEnvironment, patterns: Patterns): void {
  const findAll = (text: string, source: string, limit: bigint) => {
    const found = compilePattern(patterns, source).find(text, Number(limit));
    budget.charge(found.length);
    return found;
  };
  environment
    .registerFunction(
      "string.find(string): string",
      (text: string, source: string) => findAll(text, source, 1n)[0] ?? "",
    )
    .registerFunction("string.findAll(string): list<string>", (text: string, source: string) =>
      findAll(text, source, -1n),
    )
    .registerFunction("string.findAll(string, int): list<string>", findAll)
    .registerFunction("string.charAt(int): string", charAt)
    .registerFunction("string.replace(string, string): string", (text: string, from, to) =>
      replaced(text, from, to, -1n),
    )
    .registerFunction("string.replace(string, string, int): string", replaced)
    .registerFunction("string.format(list): string", format)
    .registerFunction(`string(${TIMESTAMP}): string`, (time: Date) => shownTime(time))
    .registerFunction(`int(${TIMESTAMP}): int`, (time: Date) =>
      BigInt(Math.floor(time.getTime() / 1000)),
    );
}

function charAt(text: string, index: bigint): string {
  const characters = [...text];
  budget.charge(characters.length / 16);
  const at = Number(index);
  if (at < 0 || at > characters.length) throw new RangeError(`index out of range: ${index}`);
  return characters[at] ?? "";
}

function replaced(text: string, from: string, to: string, limit: bigint): string {
  const parts = text.split(from);
  const replacements = limit < 0n ? parts.length - 1 : Math.min(Number(limit), parts.length - 1);
  const length = text.length + replacements * (to.length - from.length);
  if (length > MAX_RESULT_LENGTH) throw new RangeError("the text is too long");
  budget.charge(length / 16);
  const head = parts.slice(0, replacements + 1).join(to);
  const tail = parts.slice(replacements + 1);
  return tail.length === 0 ? head : [head, ...tail].join(from);
}

function shownTime(time: Date): string {
  return time.toISOString().replace(/\.?0{0,3}Z$/, "Z");
}

/** "%s", "%d", "%f", "%e", "%x", "%X", "%o", "%b" and "%%" (cel-go: ext/formatting.go). */
function format(template: string, args: readonly unknown[]): string {
  let next = 0;
  const text = template.replace(/%(?:\.(\d+))?([a-zA-Z%])/g, (_all, precision, verb: string) => {
    if (verb === "%") return "%";
    if (next >= args.length) throw new RangeError(`index ${next} out of range`);
    const shown = formatted(verb, args[next++], precision);
    budget.charge(shown.length / 16);
    return shown;
  });
  if (text.length > MAX_RESULT_LENGTH) throw new RangeError("the text is too long");
  return text;
}

function formatted(verb: string, value: unknown, precision: string | undefined): string {
  const places = Math.min(Number(precision ?? 6), 100);
  switch (verb) {
    case "s":
      return shown(value);
    case "d":
      if (typeof value === "bigint" || typeof value === "number") return String(value);
      break;
    case "f":
      if (typeof value === "bigint" || typeof value === "number")
        return Number(value).toFixed(places);
      break;
    case "e":
      if (typeof value === "bigint" || typeof value === "number") {
        return Number(value)
          .toExponential(places)
          .replace(/e([+-])(\d)$/, "e$10$2");
      }
      break;
    default:
      if (verb in RADIX && typeof value === "bigint") return value.toString(RADIX[verb]);
      if (verb === "X" && typeof value === "bigint") return value.toString(16).toUpperCase();
  }
  throw new TypeError(
    `could not parse formatting clause: unrecognized formatting clause "${verb}"`,
  );
}

const RADIX: Readonly<Record<string, number>> = { x: 16, o: 8, b: 2 };

function shown(value: unknown): string {
  if (value instanceof Date) return shownTime(value);
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  if (value instanceof Map) {
    const entries = [...value].map(([key, one]) => `${shown(key)}: ${shown(one)}`);
    return `{${entries.sort().join(", ")}}`;
  }
  if (typeof value === "object" && value !== null) return canonicalJson(value);
  return String(value);
}
