/** Compiled expressions: parsed, checked, metered, with linear-time regular expressions. */
import type { Patterns } from "../validation/patterns.ts";
import { BudgetError, budget } from "./base/budget.ts";
import { callCost, callWork, knownCost } from "./cost/calls.ts";
import { estimateCost } from "./cost/estimate.ts";
import { CompileError, shownFaults } from "./faults.ts";
import { type CallExpr, type Expr, partsOf, SyntaxFault } from "./lang/ast.ts";
import { type Checked, check, type Fault, mismatch } from "./lang/check.ts";
import type { Environment } from "./lang/environment.ts";
import { type Evaluate, evaluator, type Variables } from "./lang/evaluate.ts";
import { parseExpression } from "./lang/parse.ts";
import { DYN, sameType, type Type, type TypeKind, unwrapped } from "./lang/types.ts";
import { EvaluationError, parseDuration, parseTimestamp } from "./lang/values.ts";

/** How an evaluation ended. */
export type Outcome =
  | { readonly type: "value"; readonly value: unknown; readonly cost: number }
  | { readonly type: "error"; readonly message: string; readonly cost: number }
  | { readonly type: "exceeded"; readonly cost: number };

export interface Program {
  readonly type: Type;
  /** Whether the expression reads this variable. */
  uses(variable: string): boolean;
  /**
   * Throws Interruption for one that is not of the budget.
   * @param limit what the evaluation may cost
   */
  evaluate(variables: Variables, limit: number): Outcome;
  /** The most that an evaluation may cost. @param root the type of variables, with their sizes */
  maxCost(root: Type | undefined): number;
}

/**
 * Throws CompileError.
 * @param wanted the type that the expression must have
 */
export function compile(
  expression: string,
  wanted: TypeKind | "any",
  environment: Environment,
  patterns: Patterns,
): Program {
  const checked = checkedOf(expression, environment);
  const faults = [...checked.faults];
  if (faults.length === 0) {
    for (const { expr, isInFormat } of nodesIn(checked.expr)) {
      if (expr.kind === "call") faults.push(...literalFaults(expr, checked, patterns));
      else if (!isInFormat) faults.push(...mixedFaults(expr, checked));
    }
  }
  faults.sort((a, b) => a.at - b.at);
  if (faults.length > 0)
    throw new CompileError(`compilation failed: ${shownFaults(expression, faults)}`);
  const type = checked.types.get(checked.expr.id) ?? DYN;
  if (wanted !== "any" && type.kind !== wanted)
    throw new CompileError(`must evaluate to a ${wanted}`);
  const run = planned(checked, environment);
  const names = new Set(checked.names.values());
  return {
    type,
    uses: (variable) => names.has(variable),
    evaluate: (variables, limit) => outcomeOf(() => run(variables), limit),
    maxCost: (root) => estimateCost(checked, root).max,
  };
}

const COSTS = { cost: callCost, knownCost, work: callWork };

function planned(checked: Checked, environment: Environment): Evaluate {
  try {
    return evaluator(checked, environment, COSTS);
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    throw new CompileError(`program instantiation failed: ${error.message}`);
  }
}

function checkedOf(expression: string, environment: Environment): Checked {
  try {
    return check(parseExpression(expression), environment);
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    const { at, message } = error;
    throw new CompileError(`compilation failed: ${shownFaults(expression, [{ at, message }])}`);
  }
}

function outcomeOf(run: () => unknown, limit: number): Outcome {
  budget.start(limit);
  try {
    const value = run();
    if (budget.isExceeded) return { type: "exceeded", cost: budget.used };
    return { type: "value", value, cost: budget.used };
  } catch (error) {
    if (budget.isExceeded || error instanceof BudgetError)
      return { type: "exceeded", cost: budget.used };
    if (!(error instanceof EvaluationError)) throw error;
    return { type: "error", message: error.message, cost: budget.used };
  } finally {
    budget.end();
  }
}

interface Visited {
  readonly expr: Expr;
  /** Below a call of format(), whose arguments may have several types. */
  readonly isInFormat: boolean;
}

/** All nodes of an expression. */
function* nodesIn(root: Expr): Generator<Visited> {
  const waiting: Visited[] = [{ expr: root, isInFormat: false }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    yield next;
    const { expr } = next;
    const isInFormat = next.isInFormat || (expr.kind === "call" && expr.name === "format");
    for (const part of partsOf(expr)) waiting.push({ expr: part, isInFormat });
  }
}

/**
 * Constants that are no durations, times or patterns. Good patterns are compiled here, so that no
 * evaluation pays for them.
 */
function literalFaults(
  { id, name, target, args }: CallExpr,
  checked: Checked,
  patterns: Patterns,
): Fault[] {
  if (!checked.overloads.has(id)) return [];
  const isPattern = ["matches", "find", "findAll"].includes(name);
  const arg = isPattern && target === undefined ? args[1] : args[0];
  if (arg?.kind !== "const" || typeof arg.value !== "string") return [];
  const { value, at } = arg;
  const isValid = isPattern
    ? isGoodPattern(patterns, value) || name !== "matches"
    : name === "duration"
      ? parseDuration(value) !== undefined
      : name !== "timestamp" || parseTimestamp(value) !== undefined;
  return isValid ? [] : [{ at, message: `invalid ${name} argument` }];
}

/** Elements of a list or map whose type is not the first one's. */
function mixedFaults(expr: Expr, { types }: Checked): Fault[] {
  const groups =
    expr.kind === "list"
      ? [expr.elements]
      : expr.kind === "map"
        ? [expr.entries.map(({ key }) => ({ value: key, isOptional: false })), expr.entries]
        : [];
  return groups.flatMap((group) => {
    const typed = group.map(({ value, isOptional }) => {
      const type = types.get(value.id) ?? DYN;
      return { at: value.at, type: isOptional ? unwrapped(type) : type };
    });
    const first = typed[0]?.type ?? DYN;
    const others = typed.filter(({ type }) => !sameType(type, first));
    // Of a list the first one is reported, as in cel-go.
    return others
      .slice(0, expr.kind === "list" ? 1 : others.length)
      .map(({ at, type }) => ({ at, message: mismatch(first, type) }));
  });
}

function isGoodPattern(patterns: Patterns, source: string): boolean {
  try {
    patterns.compile(source);
    return true;
  } catch {
    return false;
  }
}
