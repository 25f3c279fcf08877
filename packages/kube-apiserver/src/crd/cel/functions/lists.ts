/**
 * Functions of lists and sets (apiserver: pkg/cel/library/lists.go; cel-go: ext/lists.go, sets.go).
 */
import { budget } from "../base/budget.ts";
import type { Environment } from "../lang/environment.ts";
import {
  compare,
  type Duration,
  duration,
  EvaluationError,
  equals,
  sizeOf,
  Uint,
} from "../lang/values.ts";

type Values = readonly unknown[];

const TIME = "google.protobuf.Timestamp";
const SPAN = "google.protobuf.Duration";
const COMPARABLE = ["int", "uint", "double", "bool", SPAN, TIME, "string", "bytes"];
/** Longer ranges are refused. */
const MAX_RANGE = 1_000_000n;

export function registerLists(environment: Environment): void {
  for (const type of COMPARABLE) {
    const list = `list<${type}>`;
    environment
      .function(`${list}.isSorted(): bool`, (items: Values) =>
        items.every((item, i) => i === 0 || compare(items[i - 1], item) <= 0),
      )
      .function(`${list}.min(): ${type}`, (items: Values) => extreme(items, "min", -1))
      .function(`${list}.max(): ${type}`, (items: Values) => extreme(items, "max", 1))
      .function(`${list}.sort(): ${list}`, (items: Values) => sorted(items, items))
      .function(`list<T>.@sortByAssociatedKeys(${list}): list<T>`, (items: Values, keys: Values) =>
        sorted(items, keys),
      );
  }
  const overflow = "integer overflow";
  environment
    .function("list<int>.sum(): int", (items: readonly bigint[]) =>
      inRange(
        items.reduce((a, b) => a + b, 0n),
        -(2n ** 63n),
        2n ** 63n - 1n,
        overflow,
      ),
    )
    .function(
      "list<uint>.sum(): uint",
      (items: readonly Uint[]) =>
        new Uint(
          inRange(
            items.reduce((a, b) => a + b.value, 0n),
            0n,
            2n ** 64n - 1n,
            overflow,
          ),
        ),
    )
    .function("list<double>.sum(): double", (items: readonly number[]) =>
      items.reduce((a, b) => a + b, 0),
    )
    .function(`list<${SPAN}>.sum(): ${SPAN}`, (items: readonly Duration[]) =>
      duration(items.reduce((a, b) => a + b.ns, 0n)),
    )
    .function("list<T>.indexOf(T): int", (items: Values, item: unknown) =>
      BigInt(items.findIndex((one) => equals(one, item))),
    )
    .function("list<T>.lastIndexOf(T): int", (items: Values, item: unknown) =>
      BigInt(items.findLastIndex((one) => equals(one, item))),
    )
    .function("list<T>.slice(int, int): list<T>", sliced)
    .function("list<T>.reverse(): list<T>", (items: Values) => items.toReversed())
    .function("list<T>.distinct(): list<T>", distinct)
    .function("list<list<T>>.flatten(): list<T>", (items: Values) => flattened(items, 1n))
    .function("list<dyn>.flatten(int): list<dyn>", (items: Values, depth: bigint) => {
      if (depth < 0n) throw new EvaluationError("level must be non-negative");
      return flattened(items, depth);
    })
    .function("lists.range(int): list<int>", (count: bigint) => {
      if (count > MAX_RANGE) throw new EvaluationError(`range is longer than ${MAX_RANGE}`);
      budget.reserve(Number(count));
      return Array.from({ length: Math.max(Number(count), 0) }, (_, i) => BigInt(i));
    });
  registerSets(environment);
}

function inRange(value: bigint, least: bigint, most: bigint, what: string): bigint {
  if (value < least || value > most) throw new EvaluationError(what);
  return value;
}

function extreme(items: Values, name: string, sign: number): unknown {
  if (items.length === 0) throw new EvaluationError(`${name} called on empty list`);
  return items.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best));
}

function sorted(items: Values, keys: Values): unknown[] {
  const pairs = keys.map((key, i) => [key, items[i]] as const);
  return pairs.sort(([a], [b]) => compare(a, b)).map(([, item]) => item);
}

function sliced(items: Values, start: bigint, end: bigint): unknown[] {
  const text = `cannot slice(${start}, ${end})`;
  if (start < 0n || end < 0n) throw new EvaluationError(`${text}, negative indexes not supported`);
  if (start > end)
    throw new EvaluationError(`${text}, start index must be less than or equal to end index`);
  if (end > items.length) throw new EvaluationError(`${text}, list is length ${items.length}`);
  return items.slice(Number(start), Number(end));
}

function distinct(items: Values): unknown[] {
  const kept: unknown[] = [];
  for (const item of items) if (!kept.some((one) => equals(one, item))) kept.push(item);
  return kept;
}

function flattened(items: Values, depth: bigint): unknown[] {
  const flat: unknown[] = [];
  for (const item of items) {
    if (Array.isArray(item) && depth > 0n) flat.push(...flattened(item, depth - 1n));
    else flat.push(item);
  }
  return flat;
}

function registerSets(environment: Environment): void {
  environment
    .function("sets.contains(list<T>, list<T>): bool", contains)
    .function(
      "sets.equivalent(list<T>, list<T>): bool",
      (a: Values, b: Values) => contains(a, b) && contains(b, a),
    )
    .function("sets.intersects(list<T>, list<T>): bool", (a: Values, b: Values) => {
      pay(a, b);
      return a.some((item) => b.some((one) => equals(one, item)));
    });
}

/** The work is the product of the sizes, so it is paid before. */
function pay(a: Values, b: Values): void {
  budget.reserve(sizeOf(a) * sizeOf(b));
}

function contains(list: Values, wanted: Values): boolean {
  pay(list, wanted);
  return wanted.every((item) => list.some((one) => equals(one, item)));
}
