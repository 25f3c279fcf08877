/**
 * Parsed expressions, in the form that cel-spec has: macros are expanded into folds.
 *
 *     [1, 2].all(x, x > 0)
 *       fold: range [1, 2], x; accu true; while @not_strictly_false(accu); accu && x > 0; accu
 */

/** A literal: numbers of type int are bigints. */
export type Literal = null | boolean | bigint | number | string | Uint8Array | UintLiteral;

export interface UintLiteral {
  readonly uint: bigint;
}

interface Node {
  /** Unique within its expression. */
  readonly id: number;
  /** Where errors point to: an offset in the text. */
  readonly at: number;
}

export interface Const extends Node {
  readonly kind: "const";
  readonly value: Literal;
}

export interface Ident extends Node {
  readonly kind: "ident";
  /** With a leading dot where the name is not of a local variable. */
  readonly name: string;
}

export interface Select extends Node {
  readonly kind: "select";
  readonly operand: Expr;
  readonly field: string;
  /** has(): whether the field is there. */
  readonly isTest: boolean;
}

export interface CallExpr extends Node {
  readonly kind: "call";
  readonly name: string;
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
}

export interface List extends Node {
  readonly kind: "list";
  readonly elements: readonly { readonly value: Expr; readonly isOptional: boolean }[];
}

export interface MapLiteral extends Node {
  readonly kind: "map";
  readonly entries: readonly {
    readonly key: Expr;
    readonly value: Expr;
    readonly isOptional: boolean;
  }[];
}

export interface Message extends Node {
  readonly kind: "message";
  readonly type: string;
  readonly fields: readonly {
    readonly name: string;
    readonly at: number;
    readonly value: Expr;
    readonly isOptional: boolean;
  }[];
}

/** A loop over a list or map. */
export interface Fold extends Node {
  readonly kind: "fold";
  readonly range: Expr;
  readonly first: string;
  /** The second variable: the element of a list, the value of a map. */
  readonly second: string | undefined;
  readonly accu: string;
  readonly init: Expr;
  readonly condition: Expr;
  readonly step: Expr;
  readonly result: Expr;
  /** No loop, but a variable of a macro. */
  readonly isBinding: boolean;
}

export type Expr = Const | Ident | Select | CallExpr | List | MapLiteral | Message | Fold;

/** The hidden variable of macros. */
export const ACCU = "@result";

/** An expression that is not valid, with its place. */
export class SyntaxFault extends SyntaxError {
  readonly at: number;

  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** "a.b.c" for selections of names; undefined for others. */
export function qualifiedName(expr: Expr): string | undefined {
  if (expr.kind === "ident") return expr.name.replace(/^\./, "");
  if (expr.kind !== "select" || expr.isTest) return undefined;
  const prefix = qualifiedName(expr.operand);
  return prefix === undefined ? undefined : `${prefix}.${expr.field}`;
}

/** The nodes directly below a node. */
export function partsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case "select":
      return [expr.operand];
    case "call":
      return expr.target === undefined ? expr.args : [expr.target, ...expr.args];
    case "list":
      return expr.elements.map(({ value }) => value);
    case "map":
      return expr.entries.flatMap(({ key, value }) => [key, value]);
    case "message":
      return expr.fields.map(({ value }) => value);
    case "fold":
      return [expr.range, expr.init, expr.condition, expr.step, expr.result];
    default:
      return [];
  }
}
