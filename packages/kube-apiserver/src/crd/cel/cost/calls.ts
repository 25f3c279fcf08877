/**
 * What calls cost at run time, by Kubernetes' tables (apiserver: pkg/cel/library/cost.go CallCost;
 * cel-go: interpreter/runtimecost.go, ext/lists.go, ext/sets.go).
 */
import { fromUtf8 } from "@quorate/proto";
import type { Overload } from "../lang/environment.ts";
import { sizeOf } from "../lang/values.ts";

/** Of a character that is visited. */
export const PER_CHARACTER = 0.1;
/** Of a character of a regular expression. */
export const PER_PATTERN_CHARACTER = 0.25;
export const LIST_COST = 10;
const REQUIREMENT_COST = 50;
const CHECK_COST = 350_000;

type Values = readonly unknown[];
type Cost = (values: Values, result: unknown, overload: Overload) => number;

function traversed(size: number, factor = PER_CHARACTER): number {
  return Math.ceil(size * factor);
}

const first = (values: Values): number => sizeOf(values[0]);
const second = (values: Values): number => sizeOf(values[1]);
const one: Cost = () => 1;
const text: Cost = (values) => traversed(first(values));
const twice: Cost = (values) => traversed(first(values), 2 * PER_CHARACTER);
const smaller: Cost = (values) => traversed(Math.min(first(values), second(values)));

/** A text and a pattern: even an empty text costs. */
function matched(textSize: number, patternSize: number): number {
  return traversed(1 + textSize) * traversed(patternSize, PER_PATTERN_CHARACTER);
}

const found: Cost = (values) => matched(first(values), second(values));

/** Of a whole value, with what is in it. */
function wholeCost(value: unknown): number {
  if (typeof value === "string") return Math.floor(fromUtf8(value).length * 0.1);
  if (value instanceof Uint8Array) return Math.floor(value.length * PER_CHARACTER);
  let cost = 0;
  if (Array.isArray(value)) for (const item of value) cost += wholeCost(item);
  else if (value instanceof Map)
    for (const [key, item] of value) cost += wholeCost(key) + wholeCost(item);
  else return 1;
  return cost;
}

const whole: Cost = (values) => wholeCost(values[0]);

function selfCompared(list: unknown): number {
  const items = list as Values;
  const isText = typeof items[0] === "string" || items[0] instanceof Uint8Array;
  const factor = isText ? 2 + PER_CHARACTER : 2;
  return traversed(items.length * items.length, factor) + 1 + LIST_COST;
}

const allocated: Cost = (_values, result) => sizeOf(result) + 1 + LIST_COST;

function sets(factor: number): Cost {
  return (values) => traversed(first(values) * second(values), factor) + 1;
}

/** A text that a network is compared with is parsed first. */
function contained(isNetwork: boolean): Cost {
  return (values, _result, { params }) => {
    const size = first(values);
    const compared = traversed(size + size) + (isNetwork ? traversed(size) + 1 : 0);
    return compared + (params[1]?.kind === "string" ? traversed(second(values)) : 0);
  };
}

/** The nominal ones: builders and accessors. */
const NOMINAL =
  "serviceAccount path group resource subresource namespace name allowed reason error errored " +
  "masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast " +
  "isGlobalUnicast format.named sign asInteger isInteger asApproximateFloat isGreaterThan " +
  "isLessThan compareTo add sub major minor patch getScheme getHostname getHost getPort " +
  "getEscapedPath getQuery";

const COSTS: ReadonlyMap<string, Cost> = new Map<string, Cost>([
  ...NOMINAL.split(" ").map((name): readonly [string, Cost] => [name, one]),
  ["check", () => CHECK_COST],
  ...["fieldSelector", "labelSelector"].map((name): readonly [string, Cost] => [
    name,
    (values) => selectorCost(second(values)),
  ]),
  ...["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"].map(
    (name): readonly [string, Cost] => [name, whole],
  ),
  ...(
    "url lowerAscii upperAscii substring trim jsonpatch.escapeKey cidr isIP isCIDR quantity " +
    "isQuantity semver isSemver startsWith endsWith strings.quote format"
  )
    .split(" ")
    .map((name): readonly [string, Cost] => [name, text]),
  ["replace", twice],
  ["split", twice],
  ["ip.isCanonical", twice],
  ["join", (_values, result) => traversed(sizeOf(result), 2 * PER_CHARACTER)],
  ["find", found],
  ["findAll", found],
  ["matches", found],
  ["ip", (values, result, overload) => (overload.isMember ? 1 : text(values, result, overload))],
  ["containsIP", contained(false)],
  ["containsCIDR", contained(true)],
  [
    "validate",
    ([format, value]) =>
      matched(sizeOf(value), (format as { readonly maxRegexSize?: number }).maxRegexSize ?? 1),
  ],
  ["bytes", (values, result, o) => (o.params[0]?.kind === "string" ? text(values, result, o) : 1)],
  ["string", (values, result, o) => (o.params[0]?.kind === "bytes" ? text(values, result, o) : 1)],
  ["@in", (values, _result, { params }) => (params[1]?.kind === "list" ? second(values) : 1)],
  ["contains", (values) => traversed(first(values)) * traversed(second(values))],
  ["_==_", (values, result, o) => (isKubernetes(values[0]) ? 1 : smaller(values, result, o))],
  ["_!=_", smaller],
  ...["_<_", "_<=_", "_>_", "_>=_"].map((name): readonly [string, Cost] => [
    name,
    (values, result, o) =>
      o.params[0]?.kind === "string" || o.params[0]?.kind === "bytes"
        ? smaller(values, result, o)
        : 1,
  ]),
  [
    "_+_",
    (values, _result, { params }) =>
      params[0]?.kind === "string" || params[0]?.kind === "bytes"
        ? traversed(first(values) + second(values))
        : 1,
  ],
  ["slice", allocated],
  [
    "reverse",
    (values, result, o) => (o.params[0]?.kind === "list" ? allocated(values, result, o) : 1),
  ],
  ["lists.range", allocated],
  ["flatten", ([list, depth]) => traversed(sizeOf(list), Number(depth ?? 1n)) + 1 + LIST_COST],
  ["distinct", ([list]) => selfCompared(list)],
  ["sort", ([list]) => selfCompared(list)],
  ["@sortByAssociatedKeys", ([, keys]) => selfCompared(keys)],
  ["sets.contains", sets(1)],
  ["sets.intersects", sets(1)],
  ["sets.equivalent", sets(2)],
]);

/**
 * How much longer than counting it takes to work on a character or an element, of functions that
 * cost too little for what they do: Kubernetes has no price for it, or a small one.
 */
const WORK: ReadonlyMap<string, number> = new Map(
  Object.entries({
    2: "trim _==_ _!=_ @in contains _+_",
    6: "charAt substring indexOf lastIndexOf _<_ _<=_ _>_ _>=_",
    16: "lowerAscii upperAscii strings.quote bytes reverse split replace sort flatten",
    32: "sum min max isSorted join",
    128: "format findAll find",
  }).flatMap(([factor, names]) =>
    names.split(" ").map((name): readonly [string, number] => [name, Number(factor)]),
  ),
);
/** Calls that take this long, in characters, whatever they are given. */
const PARSED_WORK = 1024;
const PARSERS: ReadonlySet<string> = new Set(
  (
    "quantity isQuantity url isURL ip isIP cidr isCIDR semver isSemver timestamp duration validate " +
    "matches find findAll"
  ).split(" "),
);

/** The work of a call before it is made, in characters that are counted. */
export function callWork({ name }: Overload, values: Values): number {
  if (name === "lists.range") return Number(values[0]) * 32;
  // Texts are joined in no time; what joins them counts them.
  if (name === "_+_" && typeof values[0] === "string") return 0;
  const fixed = PARSERS.has(name) ? PARSED_WORK : 0;
  const factor = WORK.get(name);
  if (factor === undefined) return fixed;
  let length = 0;
  for (const value of values)
    if (typeof value === "string" || Array.isArray(value)) length += value.length;
  return length < 64 ? fixed : fixed + length * factor;
}

/** What a call costs that compares all elements with each other; it is known before. */
export function knownCost({ name }: Overload, [list]: Values): number {
  return name === "distinct" || name === "sort" ? selfCompared(list) : 0;
}

export function selectorCost(size: number): number {
  return LIST_COST + traversed(size) + traversed(traversed(size, 0.5), REQUIREMENT_COST);
}

/** Types of Kubernetes' libraries, which compare in no time. */
function isKubernetes(value: unknown): boolean {
  return typeof value === "object" && value !== null && "celType" in value && "isLibrary" in value;
}

/** @param values the arguments, the target first */
export function callCost(overload: Overload, values: Values, result: unknown): number {
  return COSTS.get(overload.name)?.(values, result, overload) ?? 1;
}
