/**
 * A JSON document as values, with bounds: depth, number of values, one name once in an object.
 * Numbers keep their digits, as a lease's id may be beyond 2^53.
 *
 *     {"lease":9041991611653292551}  ->  Map { "lease" -> JsonNumber("9041991611653292551") }
 */
import { CodedError } from "@quorate/proto";
import { utf8Of } from "./records.ts";

/** Nesting of a transaction in plain JSON, whose own form needs less. */
export const MAX_PLAIN_DEPTH = 8;
/** Values of one document: they are read in some 5 ms. */
export const MAX_JSON_VALUES = 50_000;

/** A number, as it was written. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type JsonObject = ReadonlyMap<string, JsonValue>;
export type JsonValue = string | boolean | null | JsonNumber | readonly JsonValue[] | JsonObject;

/** A text is no JSON, or exceeds a bound; the message says where. */
export class PlainJsonError extends CodedError<"BadJson"> {
  constructor(message: string) {
    super("PlainJsonError", "BadJson", message);
  }
}

const NUMBER = /-?(?:0|[1-9]\d{0,308})(?:\.\d{1,308})?(?:[eE][+-]?\d{1,4})?/y;
const SPACES = /[ \t\r\n]*/y;
const LITERALS: readonly (readonly [string, boolean | null])[] = [
  ["true", true],
  ["false", false],
  ["null", null],
];

/**
 * The value of a document.
 * @throws PlainJsonError
 */
export function parsePlainJson(bytes: Uint8Array): JsonValue {
  const text = utf8Of(bytes);
  if (text === undefined) throw new PlainJsonError("the text is not UTF-8");
  return new Parser(text).document();
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    const value = this.#value();
    this.#spaces();
    if (this.#at < this.#text.length) this.#fail("there is more behind the value");
    return value;
  }

  #value(): JsonValue {
    if (++this.#values > MAX_JSON_VALUES)
      this.#fail(`there are more than ${MAX_JSON_VALUES} values`);
    this.#spaces();
    const char = this.#text[this.#at];
    if (char === '"') return this.#string();
    if (char === "{") return this.#nested("}", () => this.#object());
    if (char === "[") return this.#nested("]", () => this.#list());
    for (const [literal, value] of LITERALS) if (this.#takes(literal)) return value;
    return this.#number();
  }

  #nested<T>(end: string, read: () => T): T {
    this.#at++;
    if (++this.#depth > MAX_PLAIN_DEPTH) this.#fail(`it is nested deeper than ${MAX_PLAIN_DEPTH}`);
    const value = read();
    this.#spaces();
    if (!this.#takes(end)) this.#fail(`"," or "${end}" is missing`);
    this.#depth--;
    return value;
  }

  #object(): JsonObject {
    const members = new Map<string, JsonValue>();
    if (this.#isAt("}")) return members;
    do {
      this.#spaces();
      if (this.#text[this.#at] !== '"') this.#fail("a name in quotes is missing");
      const name = this.#string();
      if (members.has(name))
        this.#fail(`the name ${JSON.stringify(name.slice(0, 50))} is there twice`);
      this.#spaces();
      if (!this.#takes(":")) this.#fail('":" is missing');
      members.set(name, this.#value());
      this.#spaces();
    } while (this.#takes(","));
    return members;
  }

  #list(): JsonValue[] {
    const values: JsonValue[] = [];
    if (this.#isAt("]")) return values;
    do {
      values.push(this.#value());
      this.#spaces();
    } while (this.#takes(","));
    return values;
  }

  /** The string at the present quote. */
  #string(): string {
    const start = this.#at;
    let end = start;
    do {
      end = this.#text.indexOf('"', end + 1);
      if (end < 0) this.#fail("the string does not end");
    } while (this.#isEscaped(start, end));
    this.#at = end + 1;
    let value: string;
    try {
      value = JSON.parse(this.#text.slice(start, end + 1)) as string;
    } catch {
      this.#at = start;
      this.#fail("the string has an invalid escape or a control character");
    }
    if (!value.isWellFormed()) this.#fail("the string has half of a surrogate pair");
    return value;
  }

  /** Whether an odd number of backslashes stands before a quote. */
  #isEscaped(start: number, quote: number): boolean {
    let at = quote;
    while (at - 1 > start && this.#text[at - 1] === "\\") at--;
    return (quote - at) % 2 === 1;
  }

  #number(): JsonNumber {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text);
    if (found === null) this.#fail("a value is missing");
    this.#at = NUMBER.lastIndex;
    return new JsonNumber(found[0]);
  }

  #isAt(token: string): boolean {
    this.#spaces();
    return this.#text.startsWith(token, this.#at);
  }

  #takes(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  #spaces(): void {
    SPACES.lastIndex = this.#at;
    SPACES.exec(this.#text);
    this.#at = SPACES.lastIndex;
  }

  #fail(what: string): never {
    throw new PlainJsonError(`${what} at character ${this.#at + 1}`);
  }
}
