/**
 * The CEL library, loaded with the first rule, and the part of it that is used here. Its parser,
 * type checker and evaluator are used; regular expressions, budgets and Kubernetes' functions are
 * ours.
 */
import { loadPatterns, type Patterns } from "../validation/patterns.ts";
import { registerFunctions } from "./functions/register.ts";

/** A node of a parsed expression. */
export interface CelNode {
  readonly op: string;
  readonly args: unknown;
  readonly meta: {
    readonly alternate?: CelNode;
    readonly macro?: Readonly<Record<string, unknown>>;
    readonly evaluate: CelEvaluate;
  };
  setMeta(key: "evaluate", value: CelEvaluate): CelNode;
}

export type CelEvaluate = (evaluator: unknown, node: CelNode, context: unknown) => unknown;

/** A fault in an expression, with its place. */
export interface CelFault extends Error {
  readonly code?: string;
  readonly summary?: string;
  readonly range?: { readonly start: number; readonly end: number };
  /** The part of the expression that has the fault. */
  readonly node?: { readonly args: unknown };
}

export interface CelProgram {
  (variables: object): unknown;
  readonly ast: CelNode;
  check(): { readonly valid: boolean; readonly type?: string; readonly error?: CelFault };
}

/** Registrations, in the library's text form. */
export interface CelEnvironment {
  clone(): CelEnvironment;
  registerVariable(name: string, type: string): CelEnvironment;
  registerConstant(name: string, type: string, value: unknown): CelEnvironment;
  registerType(name: string, type: object): CelEnvironment;
  // biome-ignore lint/suspicious/noExplicitAny: handlers have the types of their signatures
  registerFunction(signature: string, handler: (...args: any[]) => unknown): CelEnvironment;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  registerOperator(signature: string, handler: (...args: any[]) => unknown): CelEnvironment;
  parse(expression: string): CelProgram;
  getDefinitions(): { readonly functions: readonly { readonly name: string }[] };
}

/** Values of type optional. */
export interface CelOptional {
  of(value: unknown): unknown;
  none(): unknown;
}

export interface CelEngine {
  /** With Kubernetes' functions; it is cloned for each rule. */
  readonly base: CelEnvironment;
  readonly optional: CelOptional;
  readonly patterns: Patterns;
  /** The names of all functions. */
  readonly functions: ReadonlySet<string>;
}

/** Longer or deeper expressions are refused. */
export const EXPRESSION_LIMITS = {
  maxAstNodes: 10_000,
  maxDepth: 100,
  maxListElements: 1000,
  maxMapEntries: 1000,
  maxCallArguments: 32,
};

let loaded: Promise<CelEngine> | undefined;

/** Loads the library once. */
export function loadCel(): Promise<CelEngine> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<CelEngine> {
  const [library, patterns] = await Promise.all([import("@marcbachmann/cel-js"), loadPatterns()]);
  // Arguments of format() have several types.
  const options = {
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
    limits: EXPRESSION_LIMITS,
  };
  const base = new library.Environment(options) as unknown as CelEnvironment;
  const optional = library.Optional as unknown as CelOptional;
  registerFunctions(base, optional, patterns);
  const functions = new Set(base.getDefinitions().functions.map(({ name }) => name));
  return { base, optional, patterns, functions };
}
