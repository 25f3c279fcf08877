/**
 * What is wrong with a JSON text, in the words of Go's encoding/json. The text is parsed here only
 * where JSON.parse refuses it.
 */

/** The character as Go's texts show it. */
function shown(character: string): string {
  if (character === "'") return "'\\''";
  if (character === '"') return "'\"'";
  return `'${character === "\\" ? "\\\\" : JSON.stringify(character).slice(1, -1)}'`;
}

const END = "unexpected end of JSON input";

class SyntaxProblem extends Error {}

/** Reads one JSON text and throws SyntaxProblem at the first character that is not valid. */
class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#value("looking for beginning of value");
    this.#space();
    if (this.#at < this.#text.length) this.#refuse("after top-level value");
  }

  #space(): void {
    while (" \t\r\n".includes(this.#text[this.#at] ?? "x")) this.#at++;
  }

  #refuse(where: string): never {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) throw new SyntaxProblem(END);
    throw new SyntaxProblem(`invalid character ${shown(String.fromCodePoint(code))} ${where}`);
  }

  #value(where: string): void {
    this.#space();
    const first = this.#text[this.#at];
    if (first === "{") this.#members();
    else if (first === "[") this.#items();
    else if (first === '"') this.#string();
    else if (first === "-" || /\d/.test(first ?? "")) this.#number();
    else if (first === "t") this.#literal("true");
    else if (first === "f") this.#literal("false");
    else if (first === "n") this.#literal("null");
    else this.#refuse(where);
  }

  /** Values and brackets nest; the depth is bounded by JSON.parse, which ran before. */
  #members(): void {
    this.#at++;
    this.#space();
    if (this.#text[this.#at] === "}") {
      this.#at++;
      return;
    }
    for (;;) {
      this.#space();
      if (this.#text[this.#at] !== '"') this.#refuse("looking for beginning of object key string");
      this.#string();
      this.#space();
      if (this.#text[this.#at] !== ":") this.#refuse("after object key");
      this.#at++;
      this.#value("looking for beginning of value");
      this.#space();
      if (this.#text[this.#at] === "}") break;
      if (this.#text[this.#at] !== ",") this.#refuse("after object key:value pair");
      this.#at++;
    }
    this.#at++;
  }

  #items(): void {
    this.#at++;
    this.#space();
    if (this.#text[this.#at] === "]") {
      this.#at++;
      return;
    }
    for (;;) {
      this.#value("looking for beginning of value");
      this.#space();
      if (this.#text[this.#at] === "]") break;
      if (this.#text[this.#at] !== ",") this.#refuse("after array element");
      this.#at++;
    }
    this.#at++;
  }

  #string(): void {
    this.#at++;
    for (;;) {
      const character = this.#text[this.#at];
      if (character === undefined || character < " ") this.#refuse("in string literal");
      this.#at++;
      if (character === '"') return;
      if (character !== "\\") continue;
      const escape = this.#text[this.#at] ?? "";
      if (escape === "" || !'bfnrt\\/"u'.includes(escape)) this.#refuse("in string escape code");
      this.#at++;
      for (let digit = 0; escape === "u" && digit < 4; digit++) {
        if (!/[0-9a-fA-F]/.test(this.#text[this.#at] ?? "")) {
          this.#refuse("in \\u hexadecimal character escape");
        }
        this.#at++;
      }
    }
  }

  #digits(where: string): void {
    if (!/\d/.test(this.#text[this.#at] ?? "")) this.#refuse(where);
    while (/\d/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  #number(): void {
    if (this.#text[this.#at] === "-") this.#at++;
    if (this.#text[this.#at] === "0") this.#at++;
    else this.#digits("in numeric literal");
    if (this.#text[this.#at] === ".") {
      this.#at++;
      this.#digits("after decimal point in numeric literal");
    }
    if (/[eE]/.test(this.#text[this.#at] ?? "")) {
      this.#at++;
      if (/[+-]/.test(this.#text[this.#at] ?? "")) this.#at++;
      this.#digits("in exponent of numeric literal");
    }
  }

  #literal(word: string): void {
    for (const [index, character] of [...word].entries()) {
      if (this.#text[this.#at] !== character) {
        this.#refuse(`in literal ${word} (expecting ${shown(word[index])})`);
      }
      this.#at++;
    }
  }
}

/** The error of encoding/json for the text; undefined for valid JSON. */
export function jsonSyntaxProblem(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    try {
      new Scanner(text).document();
    } catch (error) {
      if (error instanceof SyntaxProblem) return error.message;
      // The nesting exceeds the stack.
      if (error instanceof RangeError) return "exceeded max depth";
      throw error;
    }
    return "invalid JSON";
  }
}

/** The kind of a valid JSON text, as Go's errors name it. */
export function jsonKindOf(text: string): string {
  const first = text.trimStart()[0];
  if (first === "{") return "object";
  if (first === "[") return "array";
  if (first === '"') return "string";
  if (first === "n") return "null";
  return first === "t" || first === "f" ? "bool" : "number";
}
