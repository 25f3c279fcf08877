/**
 * Label selectors as texts (apimachinery: labels/selector.go, Parser).
 *
 *     app=web,tier in (front,back),!legacy,size>3
 */
import { invalidValue } from "./field-errors.ts";
import {
  checkRequirement,
  type LabelOperator,
  type LabelRequirement,
  labelSelectorOf,
  SelectorSyntaxError,
} from "./label-requirement.ts";
import { isQualifiedName } from "./names.ts";
import { EVERYTHING, type Selector } from "./selectors.ts";

type TokenKind = "end" | "word" | "error" | (typeof SYMBOLS)[number];

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const SYMBOLS = [")", ",", "!", "==", "=", ">", "in", "<", "!=", "notin", "("] as const;
const KNOWN: ReadonlySet<string> = new Set(SYMBOLS);
const SPECIAL = new Set(["=", "!", "(", ")", ",", ">", "<"]);
const SPACE = new Set([" ", "\t", "\r", "\n"]);

/** The operators as the error text lists them (labels/selector.go: binaryOperators). */
const EXPECTED_OPERATORS = "in, notin, =, ==, !=, gt, lt";

/** One token at `from`, where no space is; and the position after it. */
function scan(text: string, from: number): [Token, number] {
  let end = from;
  if (!SPECIAL.has(text.charAt(from))) {
    while (end < text.length && !SPECIAL.has(text.charAt(end)) && !SPACE.has(text.charAt(end)))
      end++;
    const word = text.slice(from, end);
    return [{ kind: KNOWN.has(word) ? (word as TokenKind) : "word", text: word }, end];
  }
  let found = "";
  while (end < text.length && SPECIAL.has(text.charAt(end))) {
    const symbol = text.slice(from, end + 1);
    if (KNOWN.has(symbol)) found = symbol;
    else if (found !== "") break;
    end++;
  }
  if (found === "") {
    const message = `error expected: keyword found '${text.slice(from, end)}'`;
    return [{ kind: "error", text: message }, end];
  }
  return [{ kind: found as TokenKind, text: found }, from + found.length];
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    // A zero byte ends the text for Kubernetes' scanner.
    if (text[at] === "\0") break;
    if (SPACE.has(text.charAt(at))) at++;
    else {
      const [token, next] = scan(text, at);
      tokens.push(token);
      at = next;
    }
  }
  return tokens;
}

/** What follows the last token, however often it is read. */
const END: Token = { kind: "end", text: "" };

/** Reads tokens in order. "in" and "notin" are words, except where an operator is expected. */
class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  next(): Token {
    const token = this.peek();
    this.#at++;
    return token;
  }

  peek(): Token {
    const token = this.operator();
    return token.kind === "in" || token.kind === "notin" ? { ...token, kind: "word" } : token;
  }

  /** The present token, keywords as such. */
  operator(): Token {
    return this.#tokens[this.#at] ?? END;
  }
}

function found(text: string, expected: string): SelectorSyntaxError {
  return new SelectorSyntaxError(`found '${text}', expected: ${expected}`);
}

function parseOperator(reader: TokenReader): LabelOperator {
  const { kind, text } = reader.operator();
  reader.next();
  switch (kind) {
    case "in":
    case "notin":
    case "=":
    case "==":
    case "!=":
      return kind;
    case ">":
      return "gt";
    case "<":
      return "lt";
    default:
      throw found(text, EXPECTED_OPERATORS);
  }
}

/** The values between "(" and ")"; empty ones count. */
function parseList(reader: TokenReader): Set<string> {
  const values = new Set<string>();
  for (;;) {
    const { kind, text } = reader.next();
    if (kind === "word") {
      values.add(text);
      const after = reader.peek();
      if (after.kind === ")") return values;
      if (after.kind !== ",") throw found(after.text, "',' or ')'");
    } else if (kind === ",") {
      if (values.size === 0) values.add("");
      const after = reader.peek().kind;
      if (after === ")") return values.add("");
      if (after === ",") values.add("");
    } else throw found(text, "',', or identifier");
  }
}

function parseValues(reader: TokenReader): Set<string> {
  const open = reader.next();
  if (open.kind !== "(") throw new SelectorSyntaxError(`found '${open.text}' expected: '('`);
  const first = reader.peek();
  if (first.kind === ")") {
    reader.next();
    return new Set([""]);
  }
  if (first.kind !== "word" && first.kind !== ",")
    throw found(first.text, "',', ')' or identifier");
  const values = parseList(reader);
  reader.next();
  return values;
}

function parseExactValue(reader: TokenReader): Set<string> {
  const { kind } = reader.peek();
  if (kind === "end" || kind === ",") return new Set([""]);
  const token = reader.next();
  if (token.kind !== "word") throw found(token.text, "identifier");
  return new Set([token.text]);
}

function parseRequirement(reader: TokenReader): LabelRequirement {
  let token = reader.next();
  const negated = token.kind === "!";
  if (negated) token = reader.next();
  if (token.kind !== "word") throw found(token.text, "identifier");
  const key = token.text;
  const texts = isQualifiedName(key);
  if (texts.length > 0) {
    const { field, message } = invalidValue("<nil>", key, texts.join("; "));
    throw new SelectorSyntaxError(`${field}: ${message}`);
  }
  const after = reader.peek().kind;
  if (negated || after === "end" || after === ",") {
    const requirement = { key, operator: negated ? "!" : "exists", values: [] } as const;
    checkRequirement(requirement);
    return requirement;
  }
  const operator = parseOperator(reader);
  const set = operator === "in" || operator === "notin";
  const values = set ? parseValues(reader) : parseExactValue(reader);
  const requirement = { key, operator, values: [...values].sort() };
  checkRequirement(requirement);
  return requirement;
}

/**
 * Parses a label selector; "" selects everything.
 * Throws SelectorSyntaxError with Kubernetes' text.
 */
export function parseLabelSelector(text: string): Selector {
  const reader = new TokenReader(tokensOf(text));
  const requirements: LabelRequirement[] = [];
  for (;;) {
    const { kind, text: literal } = reader.peek();
    if (kind === "end") break;
    if (kind !== "word" && kind !== "!") throw found(literal, "!, identifier, or 'end of string'");
    try {
      requirements.push(parseRequirement(reader));
    } catch (error) {
      if (!(error instanceof SelectorSyntaxError)) throw error;
      throw new SelectorSyntaxError(`unable to parse requirement: ${error.message}`);
    }
    const separator = reader.next();
    if (separator.kind === "end") break;
    if (separator.kind !== ",") throw found(separator.text, "',' or 'end of string'");
    const after = reader.peek();
    if (after.kind !== "word" && after.kind !== "!")
      throw found(after.text, "identifier after ','");
  }
  return requirements.length === 0 ? EVERYTHING : labelSelectorOf(requirements);
}
