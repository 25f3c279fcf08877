/** Compiled expressions: checked, metered, with linear-time regular expressions. */
import { defined } from "@quorate/proto";
import type { Patterns } from "../validation/patterns.ts";
import { BudgetError, budget } from "./base/budget.ts";
import { compilePattern } from "./base/pattern-cost.ts";
import { shownFault } from "./faults.ts";
import type { CelEngine, CelEnvironment, CelEvaluate, CelFault, CelNode } from "./library.ts";

/** An expression that does not compile. Its message is what Kubernetes shows. */
export class CompileError extends SyntaxError {}

/** How an evaluation ended. */
export type Outcome =
  | { readonly type: "value"; readonly value: unknown; readonly cost: number }
  | { readonly type: "error"; readonly fault: CelFault; readonly cost: number }
  | { readonly type: "exceeded" };

export interface Program {
  readonly ast: CelNode;
  /** Whether the expression reads this variable. */
  uses(variable: string): boolean;
  /** @param limit what the evaluation may cost */
  evaluate(variables: object, limit: number): Outcome;
}

/**
 * Throws CompileError.
 * @param wanted the type that the expression must have
 */
export function compile(
  expression: string,
  wanted: "bool" | "string",
  environment: CelEnvironment,
  engine: CelEngine,
): Program {
  const program = parse(expression, environment, engine);
  const { valid, type = "", error } = program.check();
  if (!valid)
    throw new CompileError(
      `compilation failed: ${shownFault(expression, defined(error, "the error"), engine.functions)}`,
    );
  if (type !== wanted && type !== "dyn" && type !== `dyn<${wanted}>`) {
    throw new CompileError(`must evaluate to a ${wanted}`);
  }
  const variables = new Set<string>();
  meter(program.ast, { patterns: engine.patterns, variables });
  return {
    ast: program.ast,
    uses: (variable) => variables.has(variable),
    evaluate: (values, limit) => run(() => program(values), limit),
  };
}

function parse(expression: string, environment: CelEnvironment, engine: CelEngine) {
  try {
    return environment.parse(expression);
  } catch (error) {
    throw new CompileError(
      `compilation failed: ${shownFault(expression, error as CelFault, engine.functions)}`,
    );
  }
}

function run(program: () => unknown, limit: number): Outcome {
  budget.start(limit);
  try {
    const value = program();
    if (budget.isExceeded) return { type: "exceeded" };
    return { type: "value", value, cost: budget.used };
  } catch (error) {
    if (budget.isExceeded || error instanceof BudgetError) return { type: "exceeded" };
    return { type: "error", fault: error as CelFault, cost: budget.used };
  } finally {
    budget.end();
  }
}

interface Metering {
  readonly patterns: Patterns;
  readonly variables: Set<string>;
}

/** Makes every node below pay for its evaluation. */
function meter(value: unknown, metering: Metering): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const one of value) meter(one, metering);
  } else if (isNode(value)) meterNode(value, metering);
  else {
    // The arguments of a comprehension, and macros.
    for (const one of Object.values(value))
      if (isNode(one) || Array.isArray(one)) meter(one, metering);
  }
}

function isNode(value: unknown): value is CelNode {
  return typeof value === "object" && value !== null && "op" in value && "meta" in value;
}

const metered = new WeakSet<CelNode>();

function meterNode(node: CelNode, metering: Metering): void {
  if (metered.has(node)) return;
  metered.add(node);
  if (node.op === "id" && typeof node.args === "string") metering.variables.add(node.args);
  const { alternate, macro, evaluate } = node.meta;
  if (alternate !== undefined) {
    meter(alternate, metering);
    return;
  }
  if (macro !== undefined) {
    meter(macro, metering);
    meter(node.args, metering);
    return;
  }
  meter(node.args, metering);
  const plain = node.op === "rcall" ? linearMatches(node, metering) : undefined;
  const inner = plain ?? evaluate;
  node.setMeta("evaluate", (evaluator, own, context) => {
    budget.charge(1);
    const value = inner(evaluator, own, context);
    budget.chargeValue(value);
    return value;
  });
}

interface Evaluator {
  run(node: CelNode, context: unknown): unknown;
}

/** x.matches(pattern) in RE2's way; the library's own would backtrack. */
function linearMatches(node: CelNode, { patterns }: Metering): CelEvaluate | undefined {
  const [name, receiver, args] = node.args as [string, CelNode, CelNode[]];
  if (name !== "matches" || args.length !== 1) return undefined;
  return (evaluator, _own, context) => {
    const text = (evaluator as Evaluator).run(receiver, context);
    const source = (evaluator as Evaluator).run(args[0], context);
    if (typeof text !== "string" || typeof source !== "string") {
      throw new TypeError("no such overload");
    }
    return compilePattern(patterns, source).test(text);
  };
}
