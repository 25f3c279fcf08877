/**
 * What an expression may cost at the least and the most, from the sizes that a schema allows
 * (cel-go: checker/cost.go; apiserver: pkg/cel/library/cost.go EstimateCallCost). Definitions with
 * too expensive rules are refused, so all figures are Kubernetes' own.
 *
 *     self.all(x, self.all(y, x == y))     without maxItems: a million times a million
 */
import { ACCU, type CallExpr, type Expr, type Fold } from "../lang/ast.ts";
import { type Checked, fieldName } from "../lang/check.ts";
import type { Overload } from "../lang/environment.ts";
import { DYN, sameType, type Type } from "../lang/types.ts";
import { charCount } from "../lang/values.ts";
import { LIST_COST, PER_CHARACTER, PER_PATTERN_CHARACTER } from "./calls.ts";

/** Sums end here, as in cel-go. */
const MAX = 2 ** 64;
const MAP_COST = 30;
const MESSAGE_COST = 40;
const CHECK_COST = 350_000;
/** Characters of the pattern behind a named format. */
const FORMAT_PATTERN = 128;
const FORMAT_NAME = 64;
const REQUIREMENT_COST = 50;

/** The least and the most, of costs or of sizes. */
interface Range {
  readonly min: number;
  readonly max: number;
}

const ZERO: Range = { min: 0, max: 0 };
const ONE: Range = { min: 1, max: 1 };
const UNKNOWN: Range = { min: 0, max: MAX };

function fixed(value: number): Range {
  return { min: value, max: value };
}

function bounded(value: number): number {
  return Math.min(value, MAX);
}

function plus(...ranges: readonly Range[]): Range {
  let [min, max] = [0, 0];
  for (const range of ranges) [min, max] = [bounded(min + range.min), bounded(max + range.max)];
  return { min, max };
}

function times(a: Range, b: Range): Range {
  return { min: bounded(a.min * b.min), max: bounded(a.max * b.max) };
}

/** Rounded up. */
function by({ min, max }: Range, factor: number): Range {
  return { min: bounded(Math.ceil(min * factor)), max: bounded(Math.ceil(max * factor)) };
}

function union(a: Range, b: Range): Range {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}

/** The sizes of what is in a list or map. */
interface Entries {
  readonly isList: boolean;
  readonly key: Range;
  readonly value: Range;
}

/** Where a value is in a variable: ["self", "spec", "@items"]. */
type Path = readonly string[];

interface Local {
  readonly path: Path;
  readonly size: Range | undefined;
  readonly entries: Entries | undefined;
}

/** What a call is asked for. */
interface CallEstimate {
  readonly cost: Range;
  readonly size?: Range | undefined;
}

/** @param root the type of the variables, with the sizes that their schema allows */
export function estimateCost(checked: Checked, root: Type | undefined): Range {
  return new Estimator(checked, root).cost(checked.expr);
}

class Estimator {
  readonly #checked: Checked;
  readonly #root: Type | undefined;
  readonly #paths = new Map<number, Path>();
  readonly #sizes = new Map<number, Range>();
  readonly #entries = new Map<number, Entries>();
  readonly #locals = new Map<string, Local[]>();

  constructor(checked: Checked, root: Type | undefined) {
    this.#checked = checked;
    this.#root = root;
  }

  cost(expr: Expr): Range {
    switch (expr.kind) {
      case "const":
        return ZERO;
      case "ident":
        this.#paths.set(expr.id, this.#local(expr.name)?.path ?? [expr.name.replace(/^\./, "")]);
        return ONE;
      case "select":
        return this.#select(expr);
      case "call":
        return this.#call(expr);
      case "list":
        return this.#list(expr);
      case "map":
        return this.#map(expr);
      case "message":
        return plus(...expr.fields.map(({ value }) => this.cost(value)), fixed(MESSAGE_COST));
      case "fold":
        return expr.isBinding ? this.#binding(expr) : this.#fold(expr);
    }
  }

  typeOf(expr: Expr): Type {
    return this.#checked.types.get(expr.id) ?? DYN;
  }

  #local(name: string): Local | undefined {
    return this.#locals.get(name)?.at(-1);
  }

  #push(name: string, local: Local): void {
    const all = this.#locals.get(name);
    if (all === undefined) this.#locals.set(name, [local]);
    else all.push(local);
  }

  #pop(name: string): void {
    this.#locals.get(name)?.pop();
  }

  pathOf(expr: Expr): Path {
    const local = expr.kind === "ident" ? this.#local(expr.name) : undefined;
    return local?.path ?? this.#paths.get(expr.id) ?? [];
  }

  #select(expr: Expr & { kind: "select" }): Range {
    const whole = this.#checked.names.get(expr.id);
    if (whole !== undefined) {
      this.#paths.set(expr.id, [whole]);
      return ONE;
    }
    const operand = this.cost(expr.operand);
    if (expr.isTest) return operand;
    const type = this.typeOf(expr.operand);
    this.#paths.set(expr.id, [...this.pathOf(expr.operand), fieldName(type, expr.field)]);
    return ["map", "struct", "param"].includes(type.kind) ? plus(operand, ONE) : operand;
  }

  #list({ id, elements }: Expr & { kind: "list" }): Range {
    const costs = elements.map(({ value }) => this.cost(value));
    const sizes = elements.map(({ value }) => this.sizeOrUnknown(value));
    this.#entries.set(id, { isList: true, key: ONE, value: unionOf(sizes) });
    return plus(...costs, fixed(LIST_COST));
  }

  #map({ id, entries }: Expr & { kind: "map" }): Range {
    const costs = entries.flatMap(({ key, value }) => [this.cost(key), this.cost(value)]);
    const key = unionOf(entries.map((entry) => this.sizeOrUnknown(entry.key)));
    const value = unionOf(entries.map((entry) => this.sizeOrUnknown(entry.value)));
    this.#entries.set(id, { isList: false, key, value });
    return plus(...costs, fixed(MAP_COST));
  }

  #binding(fold: Fold): Range {
    const costs = [this.cost(fold.range), this.cost(fold.init)];
    this.#push(fold.accu, this.#localOf(fold.init));
    costs.push(this.cost(fold.result));
    this.#pop(fold.accu);
    const size = this.sizeOf(fold.result);
    if (size !== undefined) this.#sizes.set(fold.id, size);
    const entries = this.entriesOf(fold.result);
    if (entries !== undefined) this.#entries.set(fold.id, entries);
    return plus(...costs);
  }

  #localOf(expr: Expr): Local {
    return { path: this.pathOf(expr), size: this.sizeOf(expr), entries: this.entriesOf(expr) };
  }

  #fold(fold: Fold): Range {
    const { range } = fold;
    const before = plus(this.cost(range), this.cost(fold.init));
    this.#push(fold.accu, this.#localOf(fold.init));
    const entries = this.entriesOf(range);
    const isList = entries?.isList ?? this.typeOf(range).kind === "list";
    const path = this.pathOf(range);
    const local = (part: string, size: Range | undefined): Local => ({
      path: [...path, part],
      size,
      entries: undefined,
    });
    const value = local(isList ? "@items" : "@values", entries?.value);
    if (fold.second === undefined)
      this.#push(fold.first, isList ? value : local("@keys", entries?.key));
    else {
      this.#push(fold.first, local(isList ? "@indices" : "@keys", entries?.key));
      this.#push(fold.second, value);
    }
    const loop = plus(this.cost(fold.condition), this.cost(fold.step));
    this.#pop(fold.first);
    if (fold.second !== undefined) this.#pop(fold.second);
    const result = this.cost(fold.result);
    this.#pop(fold.accu);
    const count = this.sizeOrUnknown(range);
    if (fold.init.kind === "const") {
      const size = this.sizeOf(fold.init);
      if (size !== undefined) this.#sizes.set(fold.id, size);
    } else {
      this.#sizes.set(fold.id, count);
      const inStep = this.entriesOf(fold.step);
      if (inStep !== undefined) this.#entries.set(fold.id, inStep);
    }
    return plus(before, result, times(count, loop));
  }

  entriesOf(expr: Expr): Entries | undefined {
    const known = this.#entries.get(expr.id);
    return known ?? (expr.kind === "ident" ? this.#local(expr.name)?.entries : undefined);
  }

  sizeOrUnknown(expr: Expr): Range {
    return this.sizeOf(expr) ?? UNKNOWN;
  }

  sizeOf(expr: Expr): Range | undefined {
    const known = this.#sizes.get(expr.id);
    if (known !== undefined) return known;
    const literal = literalSize(expr);
    if (literal !== undefined) return fixed(literal);
    const allowed = this.sizeAt(this.pathOf(expr));
    if (allowed !== undefined) {
      this.#sizes.set(expr.id, allowed);
      return allowed;
    }
    if (isScalar(this.typeOf(expr))) return ONE;
    return expr.kind === "ident" ? this.#local(expr.name)?.size : undefined;
  }

  /**
   * The size that the schema allows at a place; undefined where there is none. What a path begins
   * with is not looked at, as in Kubernetes: all variables, and elements of literals, are the root.
   */
  sizeAt(path: Path): Range | undefined {
    if (path.length === 0) return undefined;
    let type = this.#root;
    for (const part of path.slice(1)) {
      if (part === "@items" || part === "@values") type = type?.params.at(-1);
      else if (part === "@keys") type = type?.kind === "map" ? type.params[0] : undefined;
      else type = type?.fields?.get(part);
    }
    return type === undefined ? undefined : { min: 0, max: type.maxElements ?? 0 };
  }

  #call(call: CallExpr): Range {
    const { args, target } = call;
    if (call.name === "dyn" && args[0] !== undefined) return this.#dyn(call, args[0]);
    const costs = args.map((one) => this.cost(one));
    const overloads = this.#checked.overloads.get(call.id) ?? [];
    const name = this.#checked.functions.get(call.id) ?? call.name.replace(/^\./, "");
    if (name === "_?._") return plus(...costs, ONE);
    if (overloads.length === 0) return ZERO;
    const member = overloads[0]?.isMember === true ? target : undefined;
    const before = member === undefined ? ZERO : this.cost(member);
    let all: Range = { min: MAX, max: 0 };
    let size: Range | undefined;
    for (const overload of overloads) {
      const view = new CallView(this, call, overload, member, costs);
      const estimate = estimateOf(name, view);
      all = union(all, estimate.cost);
      if (estimate.size !== undefined)
        size = size === undefined ? estimate.size : union(size, estimate.size);
      if (name === "_[_]" && args[0] !== undefined) {
        size = this.entriesOf(args[0])?.value;
        const isList = this.typeOf(args[0]).kind === "list" || overload.params[0]?.kind === "list";
        this.#paths.set(call.id, [...this.pathOf(args[0]), isList ? "@items" : "@values"]);
      }
      size ??= this.sizeOf(call);
    }
    if (size !== undefined) this.#sizes.set(call.id, size);
    return plus(before, all);
  }

  #dyn(call: CallExpr, arg: Expr): Range {
    const cost = plus(this.cost(arg), ONE);
    const size = this.sizeOf(arg);
    if (size !== undefined) this.#sizes.set(call.id, size);
    const entries = this.entriesOf(arg);
    if (entries !== undefined) this.#entries.set(call.id, entries);
    return cost;
  }

  setEntries(expr: Expr, entries: Entries): void {
    this.#entries.set(expr.id, entries);
  }
}

function unionOf(sizes: readonly Range[]): Range {
  if (sizes.length === 0) return ZERO;
  return sizes.reduce(union, { min: MAX, max: 0 });
}

function literalSize(expr: Expr): number | undefined {
  if (expr.kind === "list") return expr.elements.length;
  if (expr.kind === "map") return expr.entries.length;
  if (expr.kind !== "const") return undefined;
  if (typeof expr.value === "string") return charCount(expr.value);
  return expr.value instanceof Uint8Array ? expr.value.length : 1;
}

const SCALARS: ReadonlySet<string> = new Set("bool double duration int timestamp uint".split(" "));

function isScalar(type: Type): boolean {
  if (type.kind === "opaque" && type.name === "optional_type")
    return isScalar(type.params[0] ?? DYN);
  return SCALARS.has(type.kind);
}

/** One call with one of its overloads, as the table of functions sees it. */
class CallView {
  readonly estimator: Estimator;
  readonly call: CallExpr;
  readonly overload: Overload;
  readonly target: Expr | undefined;
  readonly costs: readonly Range[];

  constructor(
    estimator: Estimator,
    call: CallExpr,
    overload: Overload,
    target: Expr | undefined,
    costs: readonly Range[],
  ) {
    this.estimator = estimator;
    this.call = call;
    this.overload = overload;
    this.target = target;
    this.costs = costs;
  }

  /** The size of an argument; -1: of the target. */
  size(at: number): Range {
    const expr = at < 0 ? this.target : this.call.args[at];
    return expr === undefined ? UNKNOWN : this.estimator.sizeOrUnknown(expr);
  }

  /** The type of a parameter, the target first. */
  kind(at: number): string {
    return this.overload.params[at]?.kind ?? "";
  }

  /** What the arguments cost. */
  get args(): Range {
    return plus(...this.costs);
  }

  /** The elements of the target: their type and size. */
  get element(): { readonly type: Type; readonly size: Range } | undefined {
    const { target, estimator } = this;
    const type = target && estimator.typeOf(target).params[0];
    if (target === undefined || type === undefined) return undefined;
    const path = estimator.pathOf(target);
    const isHidden = path.length === 0 || path[0] === ACCU;
    const known = isHidden ? undefined : estimator.sizeAt([...path, "@items"]);
    return { type, size: known ?? UNKNOWN };
  }

  /** The value of an argument that is a literal number. */
  int(at: number): number | undefined {
    const expr = this.call.args[at];
    return expr?.kind === "const" && typeof expr.value === "bigint"
      ? Number(expr.value)
      : undefined;
  }
}

type Estimate = (view: CallView) => CallEstimate | undefined;

function estimateOf(name: string, view: CallView): CallEstimate {
  const estimate = ESTIMATES.get(name)?.(view);
  if (estimate === undefined) return { cost: plus(ONE, view.args) };
  const isOwn = name === "_&&_" || name === "_||_" || name === "_?_:_";
  return isOwn ? estimate : { ...estimate, cost: plus(estimate.cost, view.args) };
}

const nominal: Estimate = () => ({ cost: ONE });

/** The argument or the target is visited once. */
function visits(at: number, factor = PER_CHARACTER, keepsSize = false): Estimate {
  return (view) => {
    const size = view.size(at);
    return { cost: by(size, factor), ...(keepsSize ? { size } : {}) };
  };
}

function pattern(text: Range, source: Range): Range {
  return times(by(plus(text, ONE), PER_CHARACTER), by(source, PER_PATTERN_CHARACTER));
}

const compared: Estimate = (view) => {
  const max = Math.min(view.size(0).max, view.size(1).max);
  return { cost: by({ min: max > 0 ? 1 : 0, max }, PER_CHARACTER) };
};

const ordered: Estimate = (view) =>
  view.kind(0) === "string" || view.kind(0) === "bytes" ? compared(view) : undefined;

const equal: Estimate = (view) => {
  const [left, right] = view.call.args;
  const type = left && view.estimator.typeOf(left);
  const other = right && view.estimator.typeOf(right);
  if (type?.kind !== "opaque" || other === undefined || !sameType(type, other))
    return compared(view);
  if (type.name === "optional_type") return compared(view);
  if (type.name === "kubernetes.NamedFormat")
    return { cost: by({ min: 1, max: FORMAT_NAME }, PER_CHARACTER) };
  if (type.name === "kubernetes.URL") return { cost: by(ONE, PER_CHARACTER) };
  return { cost: ONE };
};

const aggregated: Estimate = (view) => {
  if (view.target === undefined) return undefined;
  const { element } = view;
  if (element === undefined) return { cost: by(view.size(-1), PER_CHARACTER) };
  const isText = element.type.kind === "string" || element.type.kind === "bytes";
  const each = isText ? plus(ONE, by(element.size, PER_CHARACTER)) : ONE;
  return { cost: times(view.size(-1), each) };
};

const replaced: Estimate = (view) => {
  const [size, from, to] = [view.size(-1), view.size(0), view.size(1)];
  let [count, kept] = [0, 0];
  if (from.min === 0) [count, kept] = [bounded(size.max + 1), size.max];
  else if (to.max <= from.min) kept = size.max;
  else count = Math.ceil(size.max / from.min);
  let [leastCount, leastKept] = [0, 0];
  if (from.max === 0) [leastCount, leastKept] = [bounded(size.min + 1), size.min];
  else if (from.max <= to.min) leastKept = size.min;
  else leastCount = Math.ceil(size.min / from.max);
  const result = plus(times({ min: leastCount, max: count }, to), { min: leastKept, max: kept });
  return { cost: by(size, 2 * PER_CHARACTER), size: result };
};

const joined: Estimate = (view) => {
  const list = view.size(-1);
  const { element } = view;
  let size = element === undefined ? ZERO : times(list, element.size);
  if (view.call.args.length > 0) {
    const gaps = { min: Math.max(list.min - 1, 0), max: Math.max(list.max - 1, 0) };
    size = plus(size, times(view.size(0), gaps));
  }
  return { cost: by(size, PER_CHARACTER), size };
};

/** A list that is made, of this size. */
function made(size: Range, factor = 1): CallEstimate {
  return { cost: plus(by(size, factor), ONE, fixed(LIST_COST)), size };
}

function sorted(size: Range, kind: string): CallEstimate {
  const isText = kind === "string" || kind === "bytes";
  return made(times(size, size), isText ? 2 + PER_CHARACTER : 2);
}

function contains(isNetwork: boolean): Estimate {
  return (view) => {
    const address = { min: 4, max: 16 };
    const parts = [by(plus(address, address), PER_CHARACTER)];
    if (isNetwork) parts.push(by(address, PER_CHARACTER), ONE);
    if (view.kind(1) === "string") parts.push(by(view.size(0), PER_CHARACTER));
    return { cost: plus(...parts) };
  };
}

function sets(factor: number): Estimate {
  return (view) => ({ cost: plus(by(times(view.size(0), view.size(1)), factor), ONE) });
}

const selector: Estimate = (view) => {
  const size = view.size(0);
  const requirements = by(by(size, 0.5), REQUIREMENT_COST);
  return { cost: plus(fixed(LIST_COST), by(size, PER_CHARACTER), requirements) };
};

const added: Estimate = (view) => {
  const [a, b] = view.call.args;
  const kind = view.kind(0);
  if (a === undefined || b === undefined || !["string", "bytes", "list"].includes(kind))
    return undefined;
  const size = plus(view.size(0), view.size(1));
  joinEntries(view, a, b);
  return { cost: kind === "list" ? ONE : by(size, PER_CHARACTER), size };
};

function joinEntries({ estimator, call }: CallView, a: Expr, b: Expr): void {
  const [one, other] = [estimator.entriesOf(a), estimator.entriesOf(b)];
  if (one === undefined || other === undefined) return;
  const key = union(one.key, other.key);
  estimator.setEntries(call, { isList: one.isList, key, value: union(one.value, other.value) });
}

const ternary: Estimate = (view) => {
  const [, yes, no] = view.call.args as readonly [Expr, Expr, Expr];
  const [test, ifYes, ifNo] = view.costs as readonly [Range, Range, Range];
  joinEntries(view, yes, no);
  return { cost: plus(test, union(ifYes, ifNo)), size: union(view.size(1), view.size(2)) };
};

const logical: Estimate = ({ costs }) => {
  const [left, right] = costs as readonly [Range, Range];
  return { cost: { min: left.min, max: plus(left, right).max } };
};

const named = (names: string, estimate: Estimate): (readonly [string, Estimate])[] =>
  names.split(" ").map((name) => [name, estimate]);

const ESTIMATES: ReadonlyMap<string, Estimate> = new Map<string, Estimate>([
  ...named(
    "serviceAccount path group resource subresource namespace name allowed reason error errored " +
      "masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast " +
      "isLinkLocalUnicast isGlobalUnicast format.named sign asInteger isInteger " +
      "asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch getScheme " +
      "getHostname getHost getPort getEscapedPath getQuery",
    nominal,
  ),
  ["check", () => ({ cost: fixed(CHECK_COST) })],
  ...named("fieldSelector labelSelector", selector),
  ...named("isSorted sum max min indexOf lastIndexOf", aggregated),
  ...named("url jsonpatch.escapeKey", visits(0, PER_CHARACTER, true)),
  ...named("lowerAscii upperAscii substring trim", visits(-1, PER_CHARACTER, true)),
  ["replace", replaced],
  [
    "split",
    (view) => {
      const size = view.size(-1);
      const max = view.int(1) ?? size.max;
      return { cost: by(size, 2 * PER_CHARACTER), size: { min: 0, max: max < 0 ? MAX : max } };
    },
  ],
  ["join", joined],
  ...named("find findAll", (view) => ({
    cost: pattern(view.size(-1), view.size(0)),
    size: { min: 0, max: view.size(-1).max },
  })),
  [
    "matches",
    (view) =>
      view.target === undefined ? undefined : { cost: pattern(view.size(-1), view.size(0)) },
  ],
  ...named("cidr isIP isCIDR quantity isQuantity semver isSemver", visits(0)),
  ["ip", (view) => (view.overload.isMember ? { cost: ONE } : visits(0)(view))],
  ["ip.isCanonical", visits(0, 2 * PER_CHARACTER)],
  ["containsIP", contains(false)],
  ["containsCIDR", contains(true)],
  [
    "validate",
    (view) => ({
      cost: by(by(view.size(0), PER_CHARACTER), FORMAT_PATTERN * PER_PATTERN_CHARACTER),
    }),
  ],
  ["format", visits(-1)],
  [
    "bytes",
    (view) => {
      if (view.kind(0) !== "string") return undefined;
      const size = view.size(0);
      return { cost: by(size, PER_CHARACTER), size: { min: size.min, max: bounded(size.max * 4) } };
    },
  ],
  [
    "string",
    (view) => {
      if (view.kind(0) !== "bytes") return undefined;
      const size = view.size(0);
      const least = Math.floor(size.min / 4);
      return { cost: by(size, PER_CHARACTER), size: { min: least, max: size.max } };
    },
  ],
  [
    "strings.quote",
    (view) => {
      const size = view.size(0);
      const result = { min: size.min + 2, max: bounded(size.max * 2 + 2) };
      return { cost: by(size, PER_CHARACTER), size: result };
    },
  ],
  ...named("startsWith endsWith", visits(0)),
  ["@in", (view) => (view.kind(1) === "list" ? { cost: view.size(1) } : undefined)],
  [
    "contains",
    (view) => ({ cost: times(by(view.size(-1), PER_CHARACTER), by(view.size(0), PER_CHARACTER)) }),
  ],
  ...named("_&&_ _||_", logical),
  ["_?_:_", ternary],
  ["_+_", added],
  ["_==_", equal],
  ["_!=_", compared],
  ...named("_<_ _<=_ _>_ _>=_", ordered),
  [
    "slice",
    (view) => {
      const [start, end] = [view.int(0) ?? 0, view.int(1) ?? view.size(-1).max];
      return made(fixed(Math.max(end - start, 0)));
    },
  ],
  ["lists.range", (view) => made(fixed(view.int(0) ?? MAX))],
  ["reverse", (view) => (view.kind(0) === "list" ? made(view.size(-1)) : undefined)],
  [
    "flatten",
    (view) => made(view.size(-1), view.call.args.length === 0 ? 1 : (view.int(0) ?? MAX)),
  ],
  ["distinct", (view) => made(times(view.size(-1), view.size(-1)), 2)],
  ["sort", (view) => sorted(view.size(-1), view.overload.params[0]?.params[0]?.kind ?? "")],
  [
    "@sortByAssociatedKeys",
    (view) => sorted(view.size(0), view.overload.params[1]?.params[0]?.kind ?? ""),
  ],
  ["sets.contains", sets(1)],
  ["sets.intersects", sets(1)],
  ["sets.equivalent", sets(2)],
]);
