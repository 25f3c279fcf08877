/** Words of CEL (cel-spec: doc/langdef.md, Syntax). One pass; regular expressions are sticky. */
import { fromUtf8 } from "@quorate/proto";
import { type Literal, SyntaxFault } from "./ast.ts";

export interface Token {
  readonly kind: "name" | "literal" | "mark" | "end";
  /** The name, or the mark. */
  readonly text: string;
  readonly value: Literal;
  readonly at: number;
}

const BLANK = /[ \t\r\n\f]+|\/\/[^\n]*/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER =
  /0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+|[uU])?/y;
const MARK = /&&|\|\||[=!<>]=|[<>+\-*/%!?:,.()[\]{}]/y;
const STRING = /(?:[bB][rR]?|[rR][bB]?)?(?="|')/y;

const LITERALS: ReadonlyMap<string, Literal> = new Map<string, Literal>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

/** All tokens, with one of kind "end". Throws SyntaxFault. */
export function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(source)?.[0];
  };
  const add = (kind: Token["kind"], text: string, value: Literal, length: number): void => {
    tokens.push({ kind, text, value, at });
    at += length;
  };
  for (;;) {
    if (at >= source.length) {
      add("end", "<EOF>", null, 0);
      return tokens;
    }
    const blank = match(BLANK);
    if (blank !== undefined) {
      at += blank.length;
      continue;
    }
    const prefix = match(STRING);
    if (prefix !== undefined) {
      const { value, end } = readString(source, at, prefix);
      add("literal", "", value, end - at);
      continue;
    }
    const name = match(NAME);
    if (name !== undefined) {
      const literal = LITERALS.get(name);
      if (literal !== undefined) add("literal", name, literal, name.length);
      else add(name === "in" ? "mark" : "name", name, null, name.length);
      continue;
    }
    const number = match(NUMBER);
    if (number !== undefined) {
      add("literal", number, numberOf(number, at), number.length);
      continue;
    }
    const mark = match(MARK);
    if (mark === undefined) {
      const char = String.fromCodePoint(source.codePointAt(at) ?? 0);
      if (char === "`") throw new SyntaxFault(at, "unsupported syntax: '`'");
      throw new SyntaxFault(at, `Syntax error: token recognition error at: '${char}'`);
    }
    add("mark", mark, null, mark.length);
  }
}

const MAX_INT = 2n ** 63n;
const MAX_UINT = 2n ** 64n;

function numberOf(text: string, at: number): Literal {
  if (/^(?:0[xX]|\d+[uU]?$)/.test(text)) {
    const isUint = /[uU]$/.test(text);
    const value = BigInt(isUint ? text.slice(0, -1) : text);
    // -9223372036854775808 is a minus and a number that alone is too large.
    if (isUint ? value >= MAX_UINT : value > MAX_INT)
      throw new SyntaxFault(at, `Syntax error: invalid ${isUint ? "uint" : "int"} literal`);
    return isUint ? { uint: value } : value;
  }
  const value = Number(text);
  if (Number.isFinite(value)) return value;
  throw new SyntaxFault(at, "Syntax error: invalid double literal");
}

function readString(
  source: string,
  start: number,
  prefix: string,
): { value: Literal; end: number } {
  const open = start + prefix.length;
  const quote = source[open] as string;
  const isLong = source.startsWith(quote.repeat(3), open);
  const mark = isLong ? quote.repeat(3) : quote;
  const isRaw = /r/i.test(prefix);
  const isBytes = /b/i.test(prefix);
  const out = new StringBuilder(isBytes);
  let at = open + mark.length;
  for (;;) {
    const char = source[at];
    if (char === undefined || (!isLong && (char === "\n" || char === "\r")))
      throw new SyntaxFault(start, "Syntax error: token recognition error: unterminated string");
    if (source.startsWith(mark, at)) return { value: out.value(), end: at + mark.length };
    if (char !== "\\" || isRaw) {
      // A raw text's backslash keeps what is behind it, a quote too.
      const length = isRaw && char === "\\" && isLong === false ? 1 : charLength(source, at);
      out.text(source.slice(at, at + length));
      at += length;
    } else at = readEscape(source, at, out, isBytes);
  }
}

function charLength(source: string, at: number): number {
  return (source.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "?": "?",
  '"': '"',
  "'": "'",
  "`": "`",
};
const CODES = /\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/y;

function readEscape(source: string, at: number, out: StringBuilder, isBytes: boolean): number {
  const plain = ESCAPES[source[at + 1] ?? ""];
  if (plain !== undefined) {
    out.text(plain);
    return at + 2;
  }
  CODES.lastIndex = at;
  const found = CODES.exec(source);
  if (found === null) throw new SyntaxFault(at, "Syntax error: invalid escape sequence");
  const [whole, hex, short, long, octal] = found;
  const unicode = short ?? long;
  if (unicode !== undefined) {
    const code = Number.parseInt(unicode, 16);
    if (isBytes || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      throw new SyntaxFault(at, "Syntax error: invalid unicode escape");
    out.text(String.fromCodePoint(code));
  } else {
    const code = octal === undefined ? Number.parseInt(hex ?? "", 16) : Number.parseInt(octal, 8);
    out.code(code);
  }
  return at + whole.length;
}

/** Collects a text, or the bytes of it. */
class StringBuilder {
  readonly #isBytes: boolean;
  readonly #bytes: number[] = [];
  #text = "";

  constructor(isBytes: boolean) {
    this.#isBytes = isBytes;
  }

  text(text: string): void {
    if (this.#isBytes) this.#bytes.push(...fromUtf8(text));
    else this.#text += text;
  }

  /** One byte, or one character. */
  code(code: number): void {
    if (this.#isBytes) this.#bytes.push(code);
    else this.#text += String.fromCodePoint(code);
  }

  value(): Literal {
    return this.#isBytes ? Uint8Array.from(this.#bytes) : this.#text;
  }
}
