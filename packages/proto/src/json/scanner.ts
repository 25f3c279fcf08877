/**
 * Finds the end of a JSON value byte by byte, with the states and the error texts of Go's
 * encoding/json (src/encoding/json/scanner.go), which reads each body of etcd's gateway first. It
 * checks the grammar, not the UTF-8.
 *
 *     value | "string" | -12.5e+3 | literal      between them: comma, colon, end of a container
 */
import { quoteByte } from "./go-text.ts";
import { JsonError } from "./json-error.ts";

/** Nesting in a body of the gateway: Go's encoding/json has this bound, and etcd no other. */
export const MAX_GATEWAY_DEPTH = 10_000;

/** What Go reports for a body that ends inside of a value. */
export const UNEXPECTED_EOF = "unexpected EOF";

/** States between tokens, and inside of them. */
const State = {
  Value: 0,
  ValueOrEnd: 1,
  Key: 2,
  KeyOrEnd: 3,
  AfterValue: 4,
  String: 5,
  Escape: 6,
  /** The digits of a \u escape follow: four states. */
  Hex1: 7,
  Hex4: 10,
  Minus: 11,
  Zero: 12,
  Digits: 13,
  Point: 14,
  Fraction: 15,
  Exponent: 16,
  ExponentSign: 17,
  ExponentDigits: 18,
  Literal: 19,
  Done: 20,
} as const;

/** Contexts of AfterValue: what the enclosing container expects. */
const IN_KEY = 0;
const IN_OBJECT = 1;
const IN_ARRAY = 2;

const LITERALS: { readonly [first: number]: string } = { 116: "true", 102: "false", 110: "null" };

/** Scans one value after another; input arrives in ranges of bytes. */
export class JsonScanner {
  #state: number = State.Value;
  #stack = new Uint8Array(64);
  #depth = 0;
  readonly #maxDepth: number;
  #literal = "";
  #literalAt = 0;
  #error: JsonError | undefined;

  /** @param outerDepth the containers around the values */
  constructor(outerDepth = 0) {
    this.#maxDepth = MAX_GATEWAY_DEPTH - outerDepth;
  }

  /** Begins with the next value. */
  reset(): void {
    this.#state = State.Value;
    this.#depth = 0;
  }

  /** Whether nothing but spaces has been scanned since `reset`. */
  get atStart(): boolean {
    return this.#state === State.Value && this.#depth === 0;
  }

  /**
   * Scans bytes[start, end). Returns the offset behind the value's last byte when it is complete,
   * else -1: then the next call continues. Throws JsonError, also in each later call.
   */
  scan(bytes: Uint8Array, start: number, end: number): number {
    if (this.#error !== undefined) throw this.#error;
    for (let at = start; at < end; at++) {
      if (this.#state === State.String) {
        at = skipPlain(bytes, at, end);
        if (at === end) return -1;
      }
      this.#step(bytes[at]);
      if (this.#state !== State.Done) continue;
      // A number or a literal at the top ends before the byte behind it.
      return this.#depth < 0 ? at : at + 1;
    }
    return -1;
  }

  /** Whether the value is complete if no more bytes come: a number at the top. */
  endsHere(): boolean {
    if (this.#error !== undefined || this.#depth > 0) return false;
    if (this.#state === State.AfterValue) return true;
    return (
      this.#state === State.Zero ||
      this.#state === State.Digits ||
      this.#state === State.Fraction ||
      this.#state === State.ExponentDigits
    );
  }

  #fail(byte: number, context: string): void {
    this.#error = new JsonError(`invalid character ${quoteByte(byte)} ${context}`);
    throw this.#error;
  }

  #step(byte: number): void {
    switch (this.#state) {
      case State.String:
        this.#inString(byte);
        break;
      case State.AfterValue:
        this.#afterValue(byte);
        break;
      case State.Value:
      case State.ValueOrEnd:
        this.#value(byte);
        break;
      case State.Key:
      case State.KeyOrEnd:
        this.#key(byte);
        break;
      case State.Escape:
        this.#escape(byte);
        break;
      case State.Literal:
        this.#inLiteral(byte);
        break;
      default:
        if (this.#state <= State.Hex4) this.#hexDigit(byte);
        else this.#number(byte);
    }
  }

  #value(byte: number): void {
    if (isSpace(byte)) return;
    if (byte === 0x5d && this.#state === State.ValueOrEnd) {
      this.#close();
      return;
    }
    if (byte === 0x22) this.#state = State.String;
    else if (byte === 0x7b) this.#open(byte, IN_KEY, State.KeyOrEnd);
    else if (byte === 0x5b) this.#open(byte, IN_ARRAY, State.ValueOrEnd);
    else if (byte === 0x2d) this.#state = State.Minus;
    else if (byte === 0x30) this.#state = State.Zero;
    else if (isDigit(byte)) this.#state = State.Digits;
    else if (LITERALS[byte] !== undefined) {
      this.#literal = LITERALS[byte];
      this.#literalAt = 1;
      this.#state = State.Literal;
    } else this.#fail(byte, "looking for beginning of value");
  }

  #open(byte: number, context: number, next: number): void {
    if (this.#depth >= this.#maxDepth) this.#fail(byte, "exceeded max depth");
    if (this.#depth === this.#stack.length) {
      const larger = new Uint8Array(this.#depth * 2);
      larger.set(this.#stack);
      this.#stack = larger;
    }
    this.#stack[this.#depth++] = context;
    this.#state = next;
  }

  #close(): void {
    this.#depth--;
    this.#state = this.#depth === 0 ? State.Done : State.AfterValue;
  }

  #key(byte: number): void {
    if (isSpace(byte)) return;
    if (byte === 0x7d && this.#state === State.KeyOrEnd) this.#close();
    else if (byte === 0x22) this.#state = State.String;
    else this.#fail(byte, "looking for beginning of object key string");
  }

  #afterValue(byte: number): void {
    if (this.#depth === 0) {
      this.#depth = -1;
      this.#state = State.Done;
      return;
    }
    if (isSpace(byte)) {
      this.#state = State.AfterValue;
      return;
    }
    const top = this.#depth - 1;
    switch (this.#stack[top]) {
      case IN_KEY:
        if (byte !== 0x3a) this.#fail(byte, "after object key");
        this.#stack[top] = IN_OBJECT;
        this.#state = State.Value;
        break;
      case IN_OBJECT:
        if (byte === 0x2c) {
          this.#stack[top] = IN_KEY;
          this.#state = State.Key;
        } else if (byte === 0x7d) this.#close();
        else this.#fail(byte, "after object key:value pair");
        break;
      default:
        if (byte === 0x2c) this.#state = State.Value;
        else if (byte === 0x5d) this.#close();
        else this.#fail(byte, "after array element");
    }
  }

  #inString(byte: number): void {
    if (byte === 0x22) this.#state = State.AfterValue;
    else if (byte === 0x5c) this.#state = State.Escape;
    else if (byte < 0x20) this.#fail(byte, "in string literal");
  }

  #escape(byte: number): void {
    if (byte === 0x75) this.#state = State.Hex1;
    else if (isShortEscape(byte)) this.#state = State.String;
    else this.#fail(byte, "in string escape code");
  }

  #hexDigit(byte: number): void {
    if (hexValue(byte) < 0) this.#fail(byte, "in \\u hexadecimal character escape");
    this.#state = this.#state === State.Hex4 ? State.String : this.#state + 1;
  }

  #inLiteral(byte: number): void {
    const expected = this.#literal.charCodeAt(this.#literalAt);
    if (byte !== expected) {
      const char = String.fromCharCode(expected);
      this.#fail(byte, `in literal ${this.#literal} (expecting '${char}')`);
    }
    if (++this.#literalAt === this.#literal.length) this.#state = State.AfterValue;
  }

  #number(byte: number): void {
    const digit = isDigit(byte);
    const exponent = (byte | 0x20) === 0x65;
    switch (this.#state) {
      case State.Minus:
        if (!digit) this.#fail(byte, "in numeric literal");
        this.#state = byte === 0x30 ? State.Zero : State.Digits;
        break;
      case State.Zero:
      case State.Digits:
        if (digit && this.#state === State.Digits) break;
        if (byte === 0x2e) this.#state = State.Point;
        else if (exponent) this.#state = State.Exponent;
        else this.#afterValue(byte);
        break;
      case State.Point:
        if (!digit) this.#fail(byte, "after decimal point in numeric literal");
        this.#state = State.Fraction;
        break;
      case State.Fraction:
        if (exponent) this.#state = State.Exponent;
        else if (!digit) this.#afterValue(byte);
        break;
      case State.Exponent:
        if (byte === 0x2b || byte === 0x2d) {
          this.#state = State.ExponentSign;
          break;
        }
        this.#exponentDigit(byte, digit);
        break;
      case State.ExponentSign:
        this.#exponentDigit(byte, digit);
        break;
      default:
        if (!digit) this.#afterValue(byte);
    }
  }

  #exponentDigit(byte: number, digit: boolean): void {
    if (!digit) this.#fail(byte, "in exponent of numeric literal");
    this.#state = State.ExponentDigits;
  }
}

/** Space, tab, line feed or carriage return. */
export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** An ASCII digit. */
export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

const HEX_DIGITS = "0123456789abcdef";
const HEX_VALUES = new Int8Array(256).fill(-1);
for (let i = 0; i < 16; i++)
  for (const digit of [HEX_DIGITS[i], HEX_DIGITS[i].toUpperCase()])
    HEX_VALUES[digit.charCodeAt(0)] = i;

/** The value of a hexadecimal digit of either case; negative for any other byte. */
export function hexValue(byte: number): number {
  return HEX_VALUES[byte];
}

/** The letter or sign behind the backslash of an escape other than \u. */
export function isShortEscape(byte: number): boolean {
  switch (byte) {
    case 0x22:
    case 0x5c:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return true;
    default:
      return false;
  }
}

/** The offset of the next byte that ends or interrupts a string's plain bytes, or `end`. */
function skipPlain(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  for (; at < end; at++) {
    const byte = bytes[at];
    if (byte === 0x22 || byte === 0x5c || byte < 0x20) break;
  }
  return at;
}
