/**
 * Comprehensions with two variables, of a list's index and element or a map's key and value
 * (cel-go: ext/comprehensions.go):
 *
 *     list.all(i, v, CONDITION)   exists   existsOne
 *     list.transformList(i, v, [FILTER,] RESULT)
 *     map.transformMap(k, v, [FILTER,] RESULT)   transformMapEntry: RESULT is a map of one entry
 *
 * They are macros of the library: a context for each variable, one within the other.
 */
import { defined } from "@quorate/proto";
import { BudgetError, budget } from "../base/budget.ts";
import type { CelEnvironment, CelNode } from "../library.ts";

interface CelTypeName {
  readonly kind: string;
  readonly keyType?: CelTypeName;
  readonly valueType?: CelTypeName;
  isDynOrBool(): boolean;
}

/** A scope in which variables have types, and then values. */
interface Scope {
  forkWithVariable(name: string, type: CelTypeName): Scope;
  reuse(parent: Scope): Scope;
  setIterValue(value: unknown, evaluator: Evaluator): Scope;
}

interface Checker {
  check(node: CelNode, scope: Scope): CelTypeName;
  getType(name: string): CelTypeName;
  createError(code: string, message: string, node: CelNode): Error;
}

interface Evaluator {
  run(node: CelNode, scope: Scope): unknown;
  tryEval(node: CelNode, scope: Scope): unknown;
}

/** What the library hands to a macro. */
interface MacroCall {
  readonly args: readonly CelNode[];
  readonly receiver: CelNode;
}

/** A macro's own node; what it evaluates stands in fields, so that it is metered. */
interface Comprehension {
  readonly names: readonly [string, string];
  readonly range: CelNode;
  readonly filter: CelNode | undefined;
  readonly step: CelNode;
  scopes: readonly [Scope, Scope] | undefined;
}

type Entry = readonly [key: unknown, value: unknown];

/** What is done with the results of all steps. */
interface Kind {
  readonly name: string;
  readonly isPredicate: boolean;
  readonly result: string;
  /** @param step evaluates one entry; undefined where the filter leaves it out */
  run(entries: readonly Entry[], step: (entry: Entry) => unknown): unknown;
}

const LEFT_OUT: unique symbol = Symbol("left out");

/** Quantifiers hide errors of other elements where one decides, as "||" and "&&" do. */
function quantified(
  entries: readonly Entry[],
  step: (entry: Entry) => unknown,
  deciding: boolean,
): boolean {
  let failure: Error | undefined;
  for (const entry of entries) {
    let value: unknown;
    try {
      value = step(entry);
    } catch (error) {
      // More steps would only fail the same way.
      if (error instanceof BudgetError) throw error;
      failure ??= error as Error;
      continue;
    }
    if (value === deciding) return deciding;
  }
  if (failure !== undefined) throw failure;
  return !deciding;
}

function kept(entries: readonly Entry[], step: (entry: Entry) => unknown): Entry[] {
  return entries.flatMap((entry) => {
    const value = step(entry);
    return value === LEFT_OUT ? [] : [[entry[0], value] as const];
  });
}

/** Throws for a key that two entries have. */
function mapOf(entries: readonly Entry[]): Map<unknown, unknown> {
  const map = new Map<unknown, unknown>();
  for (const [key, value] of entries) {
    if (map.has(key)) throw new RangeError(`insert failed: key ${String(key)} already exists`);
    map.set(key, value);
  }
  return map;
}

function entriesOfMap(value: unknown): readonly Entry[] {
  if (value instanceof Map) return [...value];
  if (typeof value === "object" && value !== null) return Object.entries(value);
  throw new TypeError("transformMapEntry needs a map for each element");
}

const KINDS: readonly Kind[] = [
  {
    name: "all",
    isPredicate: true,
    result: "bool",
    run: (entries, step) => quantified(entries, step, false),
  },
  {
    name: "exists",
    isPredicate: true,
    result: "bool",
    run: (entries, step) => quantified(entries, step, true),
  },
  ...["existsOne", "exists_one"].map((name) => ({
    name,
    isPredicate: true,
    result: "bool",
    run: (entries: readonly Entry[], step: (entry: Entry) => unknown) =>
      entries.filter((entry) => step(entry) === true).length === 1,
  })),
  {
    name: "transformList",
    isPredicate: false,
    result: "list<dyn>",
    run: (entries, step) => kept(entries, step).map(([, value]) => value),
  },
  {
    name: "transformMap",
    isPredicate: false,
    result: "map<dyn, dyn>",
    run: (entries, step) => mapOf(kept(entries, step)),
  },
  {
    name: "transformMapEntry",
    isPredicate: false,
    result: "map<dyn, dyn>",
    run: (entries, step) =>
      mapOf(kept(entries, step).flatMap(([, value]) => entriesOfMap(value) as Entry[])),
  },
];

export function registerTwoVariables(environment: CelEnvironment): void {
  for (const kind of KINDS) {
    const { name, result, isPredicate } = kind;
    const handler = (call: MacroCall): object => macroOf(kind, call);
    environment.registerFunction(`list.${name}(ast, ast, ast): ${result}`, handler);
    if (!isPredicate)
      environment.registerFunction(`list.${name}(ast, ast, ast, ast): ${result}`, handler);
  }
}

function macroOf(kind: Kind, { args, receiver }: MacroCall): object {
  const [first, second, ...rest] = args;
  const [filter, step] = rest.length === 2 ? rest : [undefined, rest[0]];
  const names = [nameOf(first, kind), nameOf(second, kind)] as const;
  const self: Comprehension = { names, range: receiver, filter, step, scopes: undefined };
  return Object.assign(self, {
    async: false,
    typeCheck: (checker: Checker, _self: unknown, scope: Scope) =>
      checked(kind, self, checker, scope),
    evaluate: (evaluator: Evaluator, _self: unknown, scope: Scope) =>
      evaluated(kind, self, evaluator, scope),
  });
}

function nameOf(node: CelNode, { name }: Kind): string {
  if (node.op === "id") return node.args as string;
  throw new SyntaxError(`${name}(var, var, …) argument is not an identifier`);
}

function checked(kind: Kind, self: Comprehension, checker: Checker, scope: Scope): CelTypeName {
  const [first, second] = self.names;
  const dyn = checker.getType("dyn");
  const range = checker.check(self.range, scope);
  const isList = range.kind === "list";
  const keyType = isList ? checker.getType("int") : (range.keyType ?? dyn);
  const outer = scope.forkWithVariable(first, keyType);
  const inner = outer.forkWithVariable(second, range.valueType ?? dyn);
  self.scopes = [outer, inner];
  for (const node of [self.filter, kind.isPredicate ? self.step : undefined]) {
    if (node === undefined || checker.check(node, inner).isDynOrBool()) continue;
    throw checker.createError(
      "invalid_macro_argument",
      `${kind.name} predicate must return bool`,
      node,
    );
  }
  checker.check(self.step, inner);
  return checker.getType(kind.result);
}

function evaluated(kind: Kind, self: Comprehension, evaluator: Evaluator, scope: Scope): unknown {
  const entries = entriesOf(evaluator.run(self.range, scope));
  const [outer, inner] = defined(self.scopes, "the scopes");
  return kind.run(entries, ([key, value]) => {
    budget.charge(1);
    const within = inner.reuse(outer.reuse(scope).setIterValue(key, evaluator));
    within.setIterValue(value, evaluator);
    if (self.filter !== undefined && evaluator.run(self.filter, within) !== true) return LEFT_OUT;
    return evaluator.run(self.step, within);
  });
}

function entriesOf(range: unknown): readonly Entry[] {
  if (Array.isArray(range)) return range.map((value, at) => [BigInt(at), value] as const);
  if (range instanceof Map) return [...range];
  if (typeof range === "object" && range !== null) return Object.entries(range);
  throw new TypeError("the range of a comprehension must be a list or a map");
}
