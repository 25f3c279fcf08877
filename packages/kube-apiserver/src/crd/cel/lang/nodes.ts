/** Nodes of an expression, as the parser and the macros make them. */
import {
  type CallExpr,
  type Const,
  type Expr,
  type Fold,
  type Ident,
  type List,
  type Literal,
  type MapLiteral,
  type Message,
  type Select,
  SyntaxFault,
} from "./ast.ts";

/** Expressions with more are refused. */
export const MAX_NODES = 100_000;

/** Makes the nodes of one expression, with ids. Throws SyntaxFault for too many. */
export class Nodes {
  #next = 1;

  get count(): number {
    return this.#next - 1;
  }

  #id(at: number): { id: number; at: number } {
    const id = this.#next++;
    if (id > MAX_NODES) throw new SyntaxFault(at, "expression is too large");
    return { id, at };
  }

  literal(at: number, value: Literal): Const {
    return { ...this.#id(at), kind: "const", value };
  }

  ident(at: number, name: string): Ident {
    return { ...this.#id(at), kind: "ident", name };
  }

  select(at: number, operand: Expr, field: string, isTest = false): Select {
    return { ...this.#id(at), kind: "select", operand, field, isTest };
  }

  call(at: number, name: string, args: readonly Expr[], target?: Expr): CallExpr {
    return { ...this.#id(at), kind: "call", name, args, target };
  }

  list(at: number, elements: List["elements"]): List {
    return { ...this.#id(at), kind: "list", elements };
  }

  map(at: number, entries: MapLiteral["entries"]): MapLiteral {
    return { ...this.#id(at), kind: "map", entries };
  }

  message(at: number, type: string, fields: Message["fields"]): Message {
    return { ...this.#id(at), kind: "message", type, fields };
  }

  fold(at: number, parts: Omit<Fold, "id" | "at" | "kind">): Fold {
    return { ...this.#id(at), kind: "fold", ...parts };
  }
}
