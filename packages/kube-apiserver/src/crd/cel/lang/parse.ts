/**
 * The parser of CEL (cel-spec: doc/langdef.md; cel-go: parser). Places of errors are cel-go's: a
 * call's is its bracket, a selection's its dot, an operation's its operator.
 */
import { defined } from "@quorate/proto";
import { type Expr, type Literal, type Message, partsOf, SyntaxFault } from "./ast.ts";
import { type Token, tokensOf } from "./lex.ts";
import { macroFor } from "./macros.ts";
import { Nodes } from "./nodes.ts";

/** Deeper expressions are refused. */
export const MAX_DEPTH = 250;
/** Of nodes within each other; a macro is several. */
export const MAX_NESTING = 1000;
/** As in cel-go. */
export const MAX_EXPRESSION_CHARS = 100_000;

const RESERVED: ReadonlySet<string> = new Set(
  (
    "as break const continue else false for function if import in let loop package namespace " +
    "null return true var void while"
  ).split(" "),
);

const RELATIONS: ReadonlySet<string> = new Set(["<", "<=", ">=", ">", "==", "!=", "in"]);

/**
 * Throws SyntaxFault.
 * @param hasMacros whether calls with the names of macros are those
 */
export function parseExpression(source: string, hasMacros = true): Expr {
  if (source.length > MAX_EXPRESSION_CHARS)
    throw new SyntaxFault(
      0,
      `expression code point size exceeds limit: size: ${source.length}, limit ${MAX_EXPRESSION_CHARS}`,
    );
  const expr = new Parser(tokensOf(source), hasMacros).parse();
  checkNesting(expr);
  return expr;
}

/** Later steps are recursive; chains of operators and selections are deep without brackets. */
function checkNesting(root: Expr): void {
  const waiting: (readonly [Expr, number])[] = [[root, 1]];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [expr, depth] = next;
    if (depth > MAX_NESTING)
      throw new SyntaxFault(expr.at, `expression recursion limit exceeded: ${MAX_NESTING}`);
    for (const part of partsOf(expr)) waiting.push([part, depth + 1]);
  }
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #nodes = new Nodes();
  readonly #hasMacros: boolean;
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[], hasMacros: boolean) {
    this.#tokens = tokens;
    this.#hasMacros = hasMacros;
  }

  parse(): Expr {
    const expr = this.#expression();
    const { kind, text, at } = this.#token;
    if (kind !== "end") throw new SyntaxFault(at, `Syntax error: extraneous input '${text}'`);
    return expr;
  }

  get #token(): Token {
    return defined(this.#tokens[this.#next], "the token");
  }

  /** Takes the token if it is this mark; returns its place. */
  #take(mark: string): number | undefined {
    const { kind, text, at } = this.#token;
    if (kind !== "mark" || text !== mark) return undefined;
    this.#next++;
    return at;
  }

  #expect(mark: string): number {
    const at = this.#take(mark);
    if (at !== undefined) return at;
    throw new SyntaxFault(
      this.#token.at,
      `Syntax error: mismatched input '${this.#token.text}' expecting '${mark}'`,
    );
  }

  #expression(): Expr {
    if (++this.#depth > MAX_DEPTH)
      throw new SyntaxFault(this.#token.at, `max recursion depth exceeded: ${MAX_DEPTH}`);
    const condition = this.#or();
    const at = this.#take("?");
    let expr = condition;
    if (at !== undefined) {
      const yes = this.#or();
      this.#expect(":");
      expr = this.#nodes.call(at, "_?_:_", [condition, yes, this.#expression()]);
    }
    this.#depth--;
    return expr;
  }

  #or(): Expr {
    return this.#balanced("||", "_||_", () =>
      this.#balanced("&&", "_&&_", () => this.#relation(0)),
    );
  }

  /** Operands of || and && as a balanced tree, as in cel-go, so that long chains are not deep. */
  #balanced(mark: string, name: string, operand: () => Expr): Expr {
    const terms = [operand()];
    const places: number[] = [];
    for (let at = this.#take(mark); at !== undefined; at = this.#take(mark)) {
      places.push(at);
      terms.push(operand());
    }
    const build = (low: number, high: number): Expr => {
      const middle = Math.floor((low + high + 1) / 2);
      const left = middle === low ? terms[middle] : build(low, middle - 1);
      const right = middle === high ? terms[middle + 1] : build(middle + 1, high);
      return this.#nodes.call(places[middle] as number, name, [left as Expr, right as Expr]);
    };
    return places.length === 0 ? (terms[0] as Expr) : build(0, places.length - 1);
  }

  #relation(level: number): Expr {
    const marks = LEVELS[level];
    if (marks === undefined) return this.#unary();
    let left = this.#relation(level + 1);
    for (;;) {
      const { kind, text, at } = this.#token;
      if (kind !== "mark" || !marks.has(text)) return left;
      this.#next++;
      const right = this.#relation(level + 1);
      left = this.#nodes.call(at, text === "in" ? "@in" : `_${text}_`, [left, right]);
    }
  }

  #unary(): Expr {
    const { kind, text, at } = this.#token;
    if (kind !== "mark" || (text !== "!" && text !== "-")) return this.#member();
    let count = 0;
    while (this.#take(text) !== undefined) count++;
    const { kind: next, value, at: place } = this.#token;
    const isNumber = next === "literal" && (typeof value === "bigint" || typeof value === "number");
    if (text === "-" && isNumber && count % 2 === 1) {
      this.#next++;
      const negated = this.#nodes.literal(at, -value);
      return this.#selections(negated);
    }
    if (isNumber) this.#checkInt(value, place);
    const operand = this.#member();
    return count % 2 === 0 ? operand : this.#nodes.call(at, `${text}_`, [operand]);
  }

  #checkInt(value: Literal, at: number): void {
    if (value === 2n ** 63n) throw new SyntaxFault(at, "Syntax error: invalid int literal");
  }

  #member(): Expr {
    return this.#selections(this.#primary());
  }

  #selections(first: Expr): Expr {
    let expr = first;
    for (;;) {
      const dot = this.#take(".");
      if (dot !== undefined) {
        expr = this.#selection(expr, dot);
        continue;
      }
      const at = this.#take("[");
      if (at === undefined) return expr;
      const isOptional = this.#take("?") !== undefined;
      const index = this.#expression();
      this.#expect("]");
      expr = this.#nodes.call(at, isOptional ? "_[?_]" : "_[_]", [expr, index]);
    }
  }

  #selection(operand: Expr, dot: number): Expr {
    const isOptional = this.#take("?") !== undefined;
    const { kind, text, at } = this.#token;
    if (kind !== "name")
      throw new SyntaxFault(at, `Syntax error: no viable alternative at input '.${text}'`);
    this.#next++;
    if (isOptional) return this.#nodes.call(dot, "_?._", [operand, this.#nodes.literal(at, text)]);
    const open = this.#take("(");
    if (open === undefined) return this.#nodes.select(dot, operand, text);
    return this.#call(open, text, operand);
  }

  #call(open: number, name: string, target: Expr | undefined): Expr {
    const args = this.#arguments(")", () => this.#expression());
    const isMember = target !== undefined;
    const macro = this.#hasMacros ? macroFor(name, isMember, args.length) : undefined;
    return (
      macro?.(this.#nodes, open, target as Expr, args) ?? this.#nodes.call(open, name, args, target)
    );
  }

  /** Up to the closing mark; a comma may stand before it where `isTrailing`. */
  #arguments<T>(close: string, one: () => T, isTrailing = false): T[] {
    const all: T[] = [];
    if (this.#take(close) !== undefined) return all;
    if (isTrailing && this.#token.text === "," && this.#token.kind === "mark") {
      this.#next++;
      this.#expect(close);
      return all;
    }
    do {
      if (isTrailing && all.length > 0 && this.#token.text === close) break;
      all.push(one());
    } while (this.#take(",") !== undefined);
    this.#expect(close);
    return all;
  }

  #primary(): Expr {
    const token = this.#token;
    const { kind, text, at, value } = token;
    if (kind === "literal") {
      this.#next++;
      this.#checkInt(value, at);
      return this.#nodes.literal(at, value);
    }
    if (kind === "name") return this.#named("", at);
    if (kind === "mark") {
      if (this.#take("(") !== undefined) {
        const inner = this.#expression();
        this.#expect(")");
        return inner;
      }
      if (this.#take("[") !== undefined) return this.#list(at);
      if (this.#take("{") !== undefined) return this.#map(at);
      if (this.#take(".") !== undefined && this.#token.kind === "name")
        return this.#named(".", this.#token.at);
    }
    throw new SyntaxFault(
      this.#token.at,
      `Syntax error: mismatched input '${text}' expecting {'[', '{', '(', '.', '-', '!', 'true', ` +
        "'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    );
  }

  /** A variable, a call, or a message. */
  #named(dot: string, at: number): Expr {
    const { text } = this.#token;
    this.#next++;
    if (RESERVED.has(text)) throw new SyntaxFault(at, `Syntax error: reserved identifier: ${text}`);
    const open = this.#take("(");
    if (open !== undefined) return this.#call(open, `${dot}${text}`, undefined);
    const message = this.#messageName(text);
    if (message === undefined) return this.#nodes.ident(at, `${dot}${text}`);
    const brace = this.#expect("{");
    const fields = this.#arguments("}", () => this.#field(), true);
    return this.#nodes.message(brace, `${dot}${message}`, fields);
  }

  /** "a.B" where "{" follows; takes its tokens. */
  #messageName(first: string): string | undefined {
    let name = first;
    let next = this.#next;
    for (;;) {
      const token = this.#tokens[next];
      if (token?.kind !== "mark") return undefined;
      if (token.text === "{") {
        this.#next = next;
        return name;
      }
      const part = this.#tokens[next + 1];
      if (token.text !== "." || part?.kind !== "name") return undefined;
      name += `.${part.text}`;
      next += 2;
    }
  }

  #field(): Message["fields"][number] {
    const isOptional = this.#take("?") !== undefined;
    const { kind, text, at } = this.#token;
    if (kind !== "name")
      throw new SyntaxFault(at, `Syntax error: extraneous input '${text}' expecting IDENTIFIER`);
    this.#next++;
    const colon = this.#expect(":");
    return { name: text, at: colon, value: this.#expression(), isOptional };
  }

  #list(at: number): Expr {
    const elements = this.#arguments(
      "]",
      () => {
        const isOptional = this.#take("?") !== undefined;
        return { value: this.#expression(), isOptional };
      },
      true,
    );
    return this.#nodes.list(at, elements);
  }

  #map(at: number): Expr {
    const entries = this.#arguments(
      "}",
      () => {
        const isOptional = this.#take("?") !== undefined;
        const key = this.#expression();
        this.#expect(":");
        return { key, value: this.#expression(), isOptional };
      },
      true,
    );
    return this.#nodes.map(at, entries);
  }
}

const LEVELS: readonly ReadonlySet<string>[] = [
  RELATIONS,
  new Set(["+", "-"]),
  new Set(["*", "/", "%"]),
];
