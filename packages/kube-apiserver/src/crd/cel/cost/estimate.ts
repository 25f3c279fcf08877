/**
 * What a rule may cost at the most, from the bounds of its schema (cel-go: checker/cost.go;
 * apiserver: pkg/cel/library/cost.go). It is a lower bound of Kubernetes' estimate: what it counts,
 * Kubernetes counts too.
 *
 *     self.all(x, self.all(y, x == y))     without maxItems: a million times a million
 */
import type { Schema } from "@quorate/kube-storage";
import { valueSchema } from "../../schema/traits.ts";
import { escapeName } from "../base/names.ts";
import type { CelNode } from "../library.ts";
import { mostElements, mostTextBytes } from "./sizes.ts";

/** Functions that read a whole text. */
const TEXT_FUNCTIONS: ReadonlySet<string> = new Set([
  "matches",
  "contains",
  "split",
  "replace",
  "lowerAscii",
  "upperAscii",
  "trim",
  "find",
  "findAll",
  "indexOf",
  "lastIndexOf",
]);
const COST_OF_A_CHARACTER = 0.1;
/** Expressions are walked by recursion; the parser refuses deeper ones. */
const MAX_DEPTH = 200;

/** A value of an expression: its schema where that is known. */
interface Estimate {
  readonly cost: number;
  readonly schema: Schema | undefined;
}

type Variables = ReadonlyMap<string, Schema | undefined>;

/** @param self the schema of "self" and "oldSelf" */
export function estimatedCost(ast: CelNode, self: Schema): number {
  const variables = new Map([
    ["self", self],
    ["oldSelf", self],
  ]);
  return costOf(ast, variables, 0).cost;
}

function isNode(value: unknown): value is CelNode {
  return typeof value === "object" && value !== null && "op" in value && "meta" in value;
}

function costOf(node: CelNode, variables: Variables, depth: number): Estimate {
  if (depth > MAX_DEPTH) return { cost: 0, schema: undefined };
  const { alternate, macro } = node.meta;
  if (alternate !== undefined) return costOf(alternate, variables, depth + 1);
  if (macro !== undefined) return costOfMacro(macro, variables, depth + 1);
  const { op, args } = node;
  if (op === "id") return { cost: 1, schema: variables.get(args as string) };
  if (op === "comprehension") return costOfLoop(args as Loop, variables, depth + 1);
  if (op === "." || op === "[]")
    return costOfAccess(op, args as [CelNode, unknown], variables, depth);
  const parts = nodesIn(args).map((one) => costOf(one, variables, depth + 1));
  const own = op === "value" ? 0 : 1;
  const cost = parts.reduce((sum, one) => sum + one.cost, own) + textCost(op, args, parts);
  // Either of two branches is the value.
  const schema = op === "?:" ? parts[1]?.schema : undefined;
  return { cost, schema };
}

function nodesIn(value: unknown): CelNode[] {
  if (isNode(value)) return [value];
  return Array.isArray(value) ? value.flatMap(nodesIn) : [];
}

/** Reading and comparing texts. */
function textCost(op: string, args: unknown, parts: readonly Estimate[]): number {
  const bytesOf = ({ schema }: Estimate): number =>
    schema?.type === "string" ? mostTextBytes(schema) : 0;
  if (op === "==" || op === "!=") return Math.min(...parts.map(bytesOf)) * COST_OF_A_CHARACTER;
  if (op !== "rcall" || !TEXT_FUNCTIONS.has((args as readonly [string])[0])) return 0;
  return bytesOf(parts[0]) * COST_OF_A_CHARACTER;
}

function costOfAccess(
  op: string,
  [left, field]: readonly [CelNode, unknown],
  variables: Variables,
  depth: number,
): Estimate {
  const of = costOf(left, variables, depth + 1);
  const index = isNode(field) ? costOf(field, variables, depth + 1).cost : 0;
  const cost = of.cost + index + 1;
  if (op === "." && typeof field === "string")
    return { cost, schema: propertyOf(of.schema, field) };
  return { cost, schema: of.schema && elementOf(of.schema) };
}

function propertyOf(schema: Schema | undefined, name: string): Schema | undefined {
  for (const [key, property] of Object.entries(schema?.properties ?? {}))
    if (escapeName(key) === name) return property;
  return schema?.additionalProperties === undefined ? undefined : valueSchema(schema);
}

function elementOf(schema: Schema): Schema | undefined {
  return schema.type === "array" ? schema.items : valueSchema(schema);
}

/** A comprehension of the library. */
interface Loop {
  readonly iterable: CelNode;
  readonly iterVarName: string;
  readonly step: CelNode;
}

function costOfLoop({ iterable, iterVarName, step }: Loop, variables: Variables, depth: number) {
  const range = costOf(iterable, variables, depth);
  const isList = range.schema?.type === "array";
  const inner = new Map(variables).set(iterVarName, isList ? range.schema?.items : undefined);
  return looped(range, costOf(step, inner, depth).cost);
}

/** Values of unknown size count as one element. */
function looped({ schema, cost }: Estimate, step: number): Estimate {
  const isCounted = schema?.type === "array" || schema?.additionalProperties !== undefined;
  const count = isCounted ? mostElements(schema) : 1;
  return { cost: cost + count * (step + 1), schema: undefined };
}

interface MacroNodes {
  readonly [name: string]: unknown;
}

/** has(), cel.bind() and comprehensions of two variables. */
function costOfMacro(macro: MacroNodes, variables: Variables, depth: number): Estimate {
  const { range, step, filter, names, var: bound, val, exp } = macro;
  if (isNode(range) && isNode(step)) {
    const of = costOf(range, variables, depth);
    const [first, second] = names as readonly [string, string];
    const inner = new Map(variables).set(first, undefined);
    inner.set(second, of.schema && elementOf(of.schema));
    const filtered = isNode(filter) ? costOf(filter, inner, depth).cost : 0;
    return looped(of, filtered + costOf(step, inner, depth).cost);
  }
  if (typeof bound === "string" && isNode(val) && isNode(exp)) {
    const value = costOf(val, variables, depth);
    const inner = new Map(variables).set(bound, value.schema);
    const result = costOf(exp, inner, depth);
    return { cost: value.cost + result.cost, schema: result.schema };
  }
  const cost = nodesIn(macro["args"]).reduce(
    (sum, one) => sum + costOf(one, variables, depth).cost,
    0,
  );
  return { cost, schema: undefined };
}
