/**
 * Requests that use all that etcd's KV can say: every target and operator of comparisons,
 * comparisons over ranges, transactions within transactions, orders, bounds of revisions, limits,
 * counts and keys alone, open ends, keys of any bytes, puts that keep a key's value or lease, and
 * answers with what a write replaced.
 */
import type { Random } from "@quorate/host";
import type {
  ModelCompare,
  ModelDelete,
  ModelOp,
  ModelPut,
  ModelRange,
  ModelRangeOptions,
  ModelRequest,
  ModelTxn,
} from "./base/model.ts";

export interface WideOptions {
  /** Names that keys begin with. */
  readonly keys: number;
  readonly leasedShare: number;
  readonly leases: readonly string[];
  /** The highest revision that any answer has had. */
  readonly knownRevision: number;
  /** A value of its own. */
  value(): string;
}

/** What a key goes on with: nothing mostly; the least and the greatest bytes; its own successor. */
const TAILS = ["", "", "", "\0", "\xff", "\xff\xff", "\0\0", "~"];
const TARGETS: readonly ModelCompare["target"][] = ["mod", "create", "version", "value", "lease"];
const RESULTS: readonly ModelCompare["result"][] = ["=", ">", "<", "!="];
const SORTS = ["key", "version", "create", "mod", "value"] as const;
const MAX_DEPTH = 3;

function oneOf<T>(random: Random, choices: readonly T[]): T {
  return choices[random.below(choices.length)];
}

function keyOf(random: Random, { keys }: WideOptions): string {
  return `k${String.fromCharCode(97 + random.below(keys))}${oneOf(random, TAILS)}`;
}

/**
 * A key; a range of some; all from a key on, or all; one that is empty, since it ends before it
 * begins.
 */
function rangeOf(random: Random, options: WideOptions): ModelRange {
  const key = keyOf(random, options);
  switch (random.below(8)) {
    case 0:
      return { key, end: "\0" };
    case 1:
      return { key: "k", end: "l" };
    case 2:
      return { key: "k", end: keyOf(random, options) };
    case 3:
      return { key, end: `${key}\0` };
    case 4:
      return { key: "\0", end: "\0" };
    default:
      return { key, end: "" };
  }
}

/** Bounds of revisions, near those of the keys that are there. */
function boundsOf(random: Random, { knownRevision }: WideOptions): Partial<ModelRangeOptions> {
  const bound = () => Math.max(1, knownRevision - random.below(40));
  const min = bound();
  switch (random.below(5)) {
    case 0:
      return { minMod: min };
    case 1:
      return { maxMod: min };
    case 2:
      return { minCreate: min };
    case 3:
      return { maxCreate: min };
    default:
      return { minMod: min, maxMod: min + random.below(20), maxCreate: bound() };
  }
}

/** By a field, in an order or in none. */
function orderOf(random: Random): Partial<ModelRangeOptions> {
  const sortBy = oneOf(random, SORTS);
  if (sortBy !== "key" && random.below(4) === 0) return { sortBy };
  return { sortBy, descending: random.below(2) === 0 };
}

function readOf(random: Random, options: WideOptions): Extract<ModelOp, { kind: "range" }> {
  return {
    kind: "range",
    ...rangeOf(random, options),
    ...(random.below(2) === 0 && { limit: 1 + random.below(4) }),
    ...(random.below(2) === 0 && orderOf(random)),
    ...(random.below(4) === 0 && boundsOf(random, options)),
    ...(random.below(5) === 0 && { keysOnly: true }),
    ...(random.below(6) === 0 && { countOnly: true }),
  };
}

function putOf(random: Random, options: WideOptions, key = keyOf(random, options)): ModelPut {
  const ignoreValue = random.below(6) === 0;
  const ignoreLease = random.below(6) === 0;
  const isLeased = !ignoreLease && options.leases.length > 0 && random.unit() < options.leasedShare;
  return {
    kind: "put",
    key,
    value: ignoreValue ? "" : options.value(),
    ...(isLeased && { lease: oneOf(random, options.leases) }),
    ...(ignoreValue && { ignoreValue }),
    ...(ignoreLease && { ignoreLease }),
    ...(random.below(4) === 0 && { prevKv: true }),
  };
}

function deleteOf(random: Random, range: ModelRange): ModelDelete {
  return { kind: "delete", ...range, ...(random.below(4) === 0 && { prevKv: true }) };
}

function operandOf(
  random: Random,
  target: ModelCompare["target"],
  options: WideOptions,
): number | string {
  if (target === "value")
    return random.below(3) === 0 ? "" : `c${random.below(4)}.${random.below(50)}.`;
  if (target === "lease")
    return random.below(2) === 0 || options.leases.length === 0
      ? "0"
      : oneOf(random, options.leases);
  if (random.below(3) === 0) return 0;
  return target === "version"
    ? random.below(6)
    : Math.max(0, options.knownRevision - random.below(30));
}

function compareOf(random: Random, options: WideOptions): ModelCompare {
  const target = oneOf(random, TARGETS);
  const { key, end } = rangeOf(random, options);
  return {
    key,
    ...(end !== "" && { end }),
    target,
    result: oneOf(random, RESULTS),
    operand: operandOf(random, target, options),
  };
}

/**
 * A list of operations in which no key is put twice, or put and deleted, which would be refused:
 * `free` are the names whose keys may still be changed. Those that one branch takes the other may
 * take too.
 */
function opsOf(random: Random, options: WideOptions, free: Set<number>, depth: number): ModelOp[] {
  return Array.from({ length: random.below(4) }, (): ModelOp => {
    const kind = random.below(6);
    if (kind === 0 && depth < MAX_DEPTH) return txnOf(random, options, free, depth + 1);
    const [name] = free;
    if (kind < 3 || name === undefined) return readOf(random, options);
    free.delete(name);
    const key = `k${String.fromCharCode(97 + name)}`;
    if (kind === 3)
      return deleteOf(random, {
        key,
        end: oneOf(random, ["", `${key}\0`, `${key}\xff\xff\xff`]),
      });
    return putOf(random, options, `${key}${oneOf(random, TAILS)}`);
  });
}

function txnOf(random: Random, options: WideOptions, free: Set<number>, depth: number): ModelTxn {
  const compares = Array.from({ length: random.below(3) }, () => compareOf(random, options));
  const other = new Set(free);
  const success = opsOf(random, options, free, depth);
  const failure = opsOf(random, options, other, depth);
  // What either of them has taken is taken for what comes around.
  for (const name of [...free]) if (!other.has(name)) free.delete(name);
  return { kind: "txn", compares, success, failure };
}

/** Any of them. */
export function wideRequest(random: Random, options: WideOptions): ModelRequest {
  switch (random.below(6)) {
    case 0:
      return putOf(random, options);
    case 1:
      return deleteOf(random, rangeOf(random, options));
    case 2:
    case 3:
      return readOf(random, options);
    default: {
      const first = random.below(options.keys);
      return txnOf(
        random,
        options,
        new Set(Array.from({ length: options.keys }, (_, i) => (first + i) % options.keys)),
        1,
      );
    }
  }
}
