/** The part of the CEL library that is used here, as types. */
import type { Patterns } from "../validation/patterns.ts";

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
