/**
 * A JSON parser that reports fields which occur twice and can stop in between, so that a large text
 * does not hold the event loop. Errors have the texts of Go's encoding/json. As with JSON.parse,
 * the last one of several fields of one name counts, and integers beyond 2^53 lose digits.
 */
import type { Clock } from "@quorate/host";
import { CodedError, fromUtf8, quoteByte } from "@quorate/proto";
import { type MutableObject, setField } from "../schema/maps.ts";
import { MAX_DUPLICATE_FIELDS, MAX_JSON_DEPTH } from "./limits.ts";

/** A text that is not JSON, or nested too deep. The message is Go's. */
export class JsonSyntaxError extends CodedError<"BadJson"> {
  constructor(message: string) {
    super("JsonSyntaxError", "BadJson", message);
  }
}

/** JSON of the wrong type for a field, or a text that a field's type refuses. */
export class TypedJsonError extends CodedError<"WrongType"> {
  constructor(message: string) {
    super("TypedJsonError", "WrongType", message);
  }
}

/** How Go calls the type of a JSON value. */
export function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value === "boolean" ? "bool" : typeof value;
}

const duplicates = new WeakMap<object, Set<string>>();

/**
 * The names that occur more than once in an object of a parsed text; undefined where there are
 * none. Copies of the object do not have them.
 */
export function duplicatesIn(object: object): ReadonlySet<string> | undefined {
  return duplicates.get(object);
}

/**
 * All fields that occur more than once in a parsed value, such as 'duplicate field "spec.size"';
 * for values of kinds whose decoder does not report them.
 */
export function duplicateFieldsOf(value: unknown, path = ""): string[] {
  if (typeof value !== "object" || value === null) return [];
  const found: string[] = [];
  const names = duplicates.get(value);
  for (const [key, field] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    if (names?.has(key)) found.push(`duplicate field ${JSON.stringify(at)}`);
    found.push(...duplicateFieldsOf(field, at));
  }
  return found;
}

/** Parses a whole text at once. Throws JsonSyntaxError. */
export function parseJson(text: string): unknown {
  const parser = new JsonParser(text);
  parser.step(Number.POSITIVE_INFINITY);
  return parser.value;
}

/** A text of so many characters is parsed without a break, in about 2 ms. */
const SLICE_CHARS = 128 * 1024;

/**
 * Parses a text in slices, between which other work runs. Rejects with JsonSyntaxError.
 * @param clock whose turns end between them
 */
export async function parseJsonInSlices(
  text: string,
  clock: Pick<Clock, "turns">,
): Promise<unknown> {
  const parser = new JsonParser(text);
  while (!parser.step(SLICE_CHARS)) await clock.turns.next();
  return parser.value;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const SPACE = /[ \t\r\n]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings may not have them
const SPECIAL_IN_STRING = /[\\\u0000-\u001f]/;
const LITERALS: readonly (readonly [text: string, value: unknown])[] = [
  ["true", true],
  ["false", false],
  ["null", null],
];

interface Container {
  readonly items: unknown[] | undefined;
  readonly object: MutableObject;
  /** The name of the field whose value comes next. */
  key: string;
}

/** Parses a text in steps. */
export class JsonParser {
  /** The result, once `step` has returned true. */
  value: unknown;
  private readonly text: string;
  private at = 0;
  private readonly stack: Container[] = [];
  private duplicateCount = 0;

  constructor(text: string) {
    this.text = text;
  }

  /**
   * Goes on for about `chars` UTF-16 units; a single string may be longer. Returns whether the text
   * is at its end. Throws JsonSyntaxError.
   */
  step(chars: number): boolean {
    const end = this.at + chars;
    while (this.at < end) if (this.nextValue()) return true;
    return false;
  }

  /** Reads one scalar, or the beginning of a container. Returns whether the text is complete. */
  private nextValue(): boolean {
    const first = this.peek();
    if (first === "{") return this.openObject();
    if (first === "[") return this.openArray();
    const value = first === '"' ? this.string() : this.scalar(first);
    return this.completed(value);
  }

  private openObject(): boolean {
    this.at++;
    const container: Container = { items: undefined, object: {}, key: "" };
    if (this.peek() === "}") {
      this.at++;
      return this.completed(container.object);
    }
    this.push(container);
    this.key(container, "looking for beginning of object key string");
    return false;
  }

  private openArray(): boolean {
    this.at++;
    const items: unknown[] = [];
    if (this.peek() === "]") {
      this.at++;
      return this.completed(items);
    }
    this.push({ items, object: {}, key: "" });
    return false;
  }

  private push(container: Container): void {
    this.stack.push(container);
    if (this.stack.length > MAX_JSON_DEPTH) throw new JsonSyntaxError("exceeded max depth");
  }

  private key(container: Container, where: string): void {
    if (this.peek() !== '"') throw this.unexpected(where);
    container.key = this.string();
    if (this.peek() !== ":") throw this.unexpected("after object key");
    this.at++;
  }

  /** Stores a complete value where it belongs and closes the containers that end after it. */
  private completed(complete: unknown): boolean {
    let value = complete;
    for (;;) {
      const container = this.stack.at(-1);
      if (container === undefined) {
        this.value = value;
        if (this.peek() !== "") throw this.unexpected("after top-level value");
        return true;
      }
      const { items } = container;
      if (items === undefined) this.set(container, value);
      else items.push(value);
      const next = this.peek();
      if (next === ",") {
        this.at++;
        if (items === undefined) this.key(container, "looking for beginning of object key string");
        return false;
      }
      if (next !== (items === undefined ? "}" : "]"))
        throw this.unexpected(
          items === undefined ? "after object key:value pair" : "after array element",
        );
      this.at++;
      this.stack.pop();
      value = items ?? container.object;
    }
  }

  private set({ object, key }: Container, value: unknown): void {
    if (object[key] !== undefined && Object.hasOwn(object, key)) this.duplicate(object, key);
    setField(object, key, value);
  }

  private duplicate(object: MutableObject, key: string): void {
    if (++this.duplicateCount > MAX_DUPLICATE_FIELDS) return;
    const names = duplicates.get(object) ?? new Set();
    duplicates.set(object, names.add(key));
  }

  /** The next char that is no white space; "" at the end. */
  private peek(): string {
    const { text } = this;
    if (text.charCodeAt(this.at) <= 32) {
      SPACE.lastIndex = this.at;
      SPACE.test(text);
      this.at = SPACE.lastIndex;
    }
    return text.charAt(this.at);
  }

  private string(): string {
    const { text } = this;
    const start = this.at + 1;
    const quote = text.indexOf('"', start);
    const plain = text.slice(start, quote < 0 ? text.length : quote);
    if (quote >= 0 && !SPECIAL_IN_STRING.test(plain)) {
      this.at = quote + 1;
      return plain;
    }
    let at = start;
    for (; at < text.length && text[at] !== '"'; at++) {
      if (text.charCodeAt(at) < 32) throw this.unexpected("in string literal", at);
      if (text[at] === "\\") at = this.escape(at + 1);
    }
    if (at >= text.length) throw this.unexpected("in string literal", text.length);
    this.at = at + 1;
    // Go replaces surrogates without a partner.
    return (JSON.parse(text.slice(start - 1, at + 1)) as string).toWellFormed();
  }

  /** Checks the escape sequence whose char after the backslash is at `at`; returns its end. */
  private escape(at: number): number {
    const { text } = this;
    if (text[at] !== "u") {
      if (!'"\\/bfnrt'.includes(text[at] ?? "x"))
        throw this.unexpected("in string escape code", at);
      return at;
    }
    for (let digit = at + 1; digit <= at + 4; digit++)
      if (!/[0-9a-fA-F]/.test(text[digit] ?? ""))
        throw this.unexpected("in \\u hexadecimal character escape", digit);
    return at + 4;
  }

  private scalar(first: string): unknown {
    const { text, at } = this;
    for (const [literal, value] of LITERALS) {
      if (first !== literal[0]) continue;
      for (let offset = 1; offset < literal.length; offset++)
        if (text[at + offset] !== literal[offset])
          throw this.unexpected(
            `in literal ${literal} (expecting ${quoted(literal.charAt(offset))})`,
            at + offset,
          );
      this.at = at + literal.length;
      return value;
    }
    NUMBER.lastIndex = at;
    if (!NUMBER.test(text)) {
      if (first === "-") throw this.unexpected("in numeric literal", at + 1);
      throw this.unexpected("looking for beginning of value");
    }
    this.at = NUMBER.lastIndex;
    const next = text[this.at];
    if (next === "." && !/[.eE]/.test(text.slice(at, this.at)))
      throw this.unexpected("after decimal point in numeric literal", this.at + 1);
    if ((next === "e" || next === "E") && !/[eE]/.test(text.slice(at, this.at)))
      throw this.unexpected(
        "in exponent of numeric literal",
        this.at + (/[-+]/.test(text[this.at + 1] ?? "") ? 2 : 1),
      );
    return Number(text.slice(at, this.at));
  }

  private unexpected(where: string, at = this.at): JsonSyntaxError {
    const isAtEnd = at >= this.text.length;
    // Go takes the end for a space, which ends all but literals, numbers and escapes.
    if (isAtEnd && !/in literal|numeric|escape/.test(where))
      return new JsonSyntaxError("unexpected end of JSON input");
    const char = isAtEnd ? " " : String.fromCodePoint(this.text.codePointAt(at) ?? 0);
    return new JsonSyntaxError(`invalid character ${quoted(char)} ${where}`);
  }
}

/** A char as Go's errors quote it: the first byte of its UTF-8. */
function quoted(char: string): string {
  return quoteByte(fromUtf8(char)[0] ?? 0);
}

const GO_TYPE =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ' +
  'Kind string "json:\\"kind,omitempty\\"" }';

/** "" where the body does not say it. */
export interface StatedKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Throws JsonSyntaxError with Go's text for a value that is no object, or of other types. */
export function statedKind(value: unknown): StatedKind {
  if (value === null) return { apiVersion: "", kind: "" };
  if (typeof value !== "object" || Array.isArray(value))
    throw new JsonSyntaxError(
      `json: cannot unmarshal ${jsonKind(value)} into Go value of type ${GO_TYPE}`,
    );
  const fields = value as Readonly<Record<string, unknown>>;
  // The first one in the text is the one that Go complains about.
  for (const [name, field] of Object.entries(fields))
    if ((name === "apiVersion" || name === "kind") && typeof field !== "string" && field !== null)
      throw new JsonSyntaxError(
        `json: cannot unmarshal ${jsonKind(field)} into Go struct field .${name} of type string`,
      );
  const text = (name: string): string =>
    Object.hasOwn(fields, name) && typeof fields[name] === "string" ? fields[name] : "";
  return { apiVersion: text("apiVersion"), kind: text("kind") };
}
