/** Reads the scalar values of a request's JSON and writes them as protobuf. */
import { EMPTY, toLatin1, toUtf8 } from "../wire/bytes.ts";
import { decodedLength, readBase64 } from "./base64.ts";
import { integerOfNumber, integerOfString, numberEnd } from "./integers.ts";
import { quoted, Refusal } from "./refusal.ts";
import { isDigit } from "./scanner.ts";
import type { JsonField } from "./schema.ts";
import {
  closingQuote,
  decodeString,
  MAX_STEP_BYTES,
  plainEnd,
  type StringDecoding,
  takesSteps,
} from "./strings.ts";
import type { WireOutput } from "./wire-output.ts";

const QUOTE = 0x22;
const PAD = 0x3d;
/** Strings up to it are searched here for their end, longer ones by native code. */
const SHORT_STRING_BYTES = 172;
/** Digits that a number holds exactly, whatever they are. */
const EXACT_DIGITS = 15;
/** A varint, and a tag or a length before it. */
const MAX_PREFIX_BYTES = 20;

/** extraWork of an enum's name, and of a number that is not a plain integer. */
const ENUM_WORK = 16;
const NUMBER_WORK = 64;
/** A longer number is none: it would be read in one step, millions of digits in 10 ms. */
const MAX_NUMBER_CHARS: number = 64 << 10;

const TRUE = "true";
const FALSE = "false";
const NULL = "null";

interface Range {
  readonly min: bigint;
  readonly max: bigint;
}
const RANGES: { readonly [kind: string]: Range } = {
  int32: { min: -(2n ** 31n), max: 2n ** 31n - 1n },
  enum: { min: -(2n ** 31n), max: 2n ** 31n - 1n },
  uint32: { min: 0n, max: 2n ** 32n - 1n },
  int64: { min: -(2n ** 63n), max: 2n ** 63n - 1n },
  uint64: { min: 0n, max: 2n ** 64n - 1n },
};
/** Integers up to 15 digits that are surely in range. */
const MAX_32_BIT = 0x7fff_ffff;

/** A position in a JSON text, and the reads from there. All throw Refusal. */
export class ScalarReader {
  readonly json: Uint8Array;
  /** The next byte. */
  pos: number;
  /** Work beside the bytes that were read, in the time that a byte takes (about 5 ns). */
  extraWork = 0;
  /** The string at its `open`, decoded in steps. */
  protected decoded: StringDecoding | undefined;
  /** Longer strings are decoded in steps. */
  protected stepBytes: number = MAX_STEP_BYTES;

  constructor(json: Uint8Array) {
    this.json = json;
    this.pos = 0;
  }

  /**
   * Reads the value at `pos` and writes it.
   * @param listed in a list, whose tag is written already where it is packed: default values count
   * @returns false, with nothing read or written, for a long string: `decoded` must hold it first
   */
  scalar(field: JsonField, listed: boolean, out: WireOutput): boolean {
    if (this.json[this.pos] === QUOTE) {
      if (field.kind === "bytes" && this.#plainBytes(field, listed, out)) return true;
      if (this.decoded?.open !== this.pos && takesSteps(this.json, this.pos, this.stepBytes))
        return false;
    }
    this.#value(field, listed, out);
    return true;
  }

  #value(field: JsonField, listed: boolean, out: WireOutput): void {
    switch (field.kind) {
      case "bytes":
        this.#unusualBytes(field, listed, out);
        break;
      case "string":
        this.#string(field, listed, out);
        break;
      case "bool":
        this.#bool(field, listed, out);
        break;
      case "enum":
        this.#enum(field, listed, out);
        break;
      default:
        this.#integer(field, listed, out);
    }
  }

  /** The offset behind the token at `pos`, for an error that quotes it. */
  tokenEnd(): number {
    const first = this.json[this.pos];
    if (first === QUOTE) return this.#stringEnd() + 1;
    const literal = first === 0x74 ? TRUE : first === 0x66 ? FALSE : first === 0x6e ? NULL : "";
    if (literal !== "") return this.literalEnd(literal);
    if (first === 0x2d || isDigit(first)) {
      const end = numberEnd(this.json, this.pos);
      if (end < 0) throw Refusal.grammar;
      return end;
    }
    if (first !== 0x7b && first !== 0x5b) throw Refusal.grammar;
    return this.pos + 1;
  }

  /** The offset behind a literal that must be at `pos`. */
  literalEnd(literal: string): number {
    const end = this.pos + literal.length;
    if (end > this.json.length || toLatin1(this.json, this.pos, end) !== literal)
      throw Refusal.grammar;
    return end;
  }

  /** The offset of the closing quote of the string at `pos`, which is checked. */
  #stringEnd(): number {
    if (this.decoded?.open === this.pos) return this.decoded.at;
    const plain = plainEnd(this.json, this.pos + 1, this.json.length);
    if (plain >= 0) return plain;
    const close = closingQuote(this.json, this.pos, this.json.length);
    if (close < 0) throw Refusal.grammar;
    decodeString(this.json, this.pos, close);
    return close;
  }

  #invalid(field: JsonField): Refusal {
    const token = quoted(this.json, this.pos, this.tokenEnd());
    const { kind, jsonName } = field;
    return Refusal.value(this.pos, `invalid value for ${kind} field ${jsonName}: ${token}`);
  }

  /** Base64 without escapes and line breaks. False, with nothing read, if it is not that. */
  #plainBytes(field: JsonField, listed: boolean, out: WireOutput): boolean {
    const { json, pos } = this;
    if (this.decoded?.open === pos) return false;
    const start = pos + 1;
    let end = plainEnd(json, start, Math.min(start + SHORT_STRING_BYTES, json.length));
    if (end < 0) end = json.indexOf(QUOTE, start);
    const size = end < 0 ? -1 : decodedLength(json, start, end);
    if (size === 0 && end === start) this.#writeBytes(field, listed, out, EMPTY);
    else if (size < 0 || !putDecoded(out, field.tag, json, start, end, size)) return false;
    this.pos = end + 1;
    return true;
  }

  /** Escapes in the text, line breaks in the base64, or neither: an error. */
  #unusualBytes(field: JsonField, listed: boolean, out: WireOutput): void {
    if (this.json[this.pos] !== QUOTE) throw this.#invalid(field);
    const open = this.pos;
    const text = this.text();
    const chars = withoutLineBreaks(text);
    // Go skips line breaks, but counts them where it decides whether there is padding.
    const padded = text.length % 4 === 0;
    const whole = chars.length % 4 === 0;
    const fits = padded ? whole : !whole || !chars.includes(PAD);
    const size = fits ? decodedLength(chars, 0, chars.length) : -1;
    const value = new Uint8Array(Math.max(0, size));
    if (size < 0 || !readBase64(chars, 0, chars.length, value, 0, size)) {
      this.pos = open;
      throw this.#invalid(field);
    }
    this.#writeBytes(field, listed, out, value);
  }

  #writeBytes(field: JsonField, listed: boolean, out: WireOutput, value: Uint8Array): void {
    if (value.length === 0 && !listed && field.oneofBit === 0) return;
    out.varint(field.tag);
    out.view(value);
  }

  #string(field: JsonField, listed: boolean, out: WireOutput): void {
    if (this.json[this.pos] !== QUOTE) throw this.#invalid(field);
    this.#writeBytes(field, listed, out, this.text());
  }

  /** The string at `pos` as UTF-8; a view of the JSON if it is plain. Moves behind it. */
  text(): Uint8Array {
    const { json, pos, decoded } = this;
    if (decoded?.open === pos) {
      this.pos = decoded.at + 1;
      return decoded.text;
    }
    const plain = plainEnd(json, pos + 1, json.length);
    const close = plain < 0 ? closingQuote(json, pos, json.length) : plain;
    if (close < 0) throw Refusal.grammar;
    this.pos = close + 1;
    if (plain >= 0) return json.subarray(pos + 1, close);
    this.extraWork += close - pos;
    return decodeString(json, pos, close);
  }

  #bool(field: JsonField, listed: boolean, out: WireOutput): void {
    const first = this.json[this.pos];
    if (first !== 0x74 && first !== 0x66) throw this.#invalid(field);
    const value = first === 0x74;
    this.pos = this.literalEnd(value ? TRUE : FALSE);
    this.#writeInteger(field, listed, out, value ? 1 : 0);
  }

  #enum(field: JsonField, listed: boolean, out: WireOutput): void {
    if (this.json[this.pos] !== QUOTE) {
      this.#integer(field, listed, out);
      return;
    }
    this.extraWork += ENUM_WORK;
    const text = this.text();
    const number = field.enumType!.numbers.get(toUtf8(text));
    // An unknown name counts as absent, as etcd's gateway is configured.
    if (number !== undefined) this.#writeInteger(field, listed, out, number);
  }

  #integer(field: JsonField, listed: boolean, out: WireOutput): void {
    const { json, pos } = this;
    const quoted = json[pos] === QUOTE;
    const negative = json[quoted ? pos + 1 : pos] === 0x2d;
    const start = pos + (quoted ? 1 : 0) + (negative ? 1 : 0);
    let at = start;
    let value = 0;
    for (; at - start <= EXACT_DIGITS; at++) {
      const digit = json[at] - 0x30;
      if (!(digit >= 0 && digit <= 9)) break;
      value = value * 10 + digit;
    }
    const digits = at - start;
    const usual =
      digits > 0 &&
      digits <= EXACT_DIGITS &&
      (json[start] !== 0x30 || digits === 1) &&
      (quoted ? json[at] === QUOTE : endsNumber(json[at])) &&
      fits(field, value, negative);
    if (!usual) {
      this.#unusualInteger(field, listed, out);
      return;
    }
    this.pos = quoted ? at + 1 : at;
    this.#writeInteger(field, listed, out, negative && value !== 0 ? -value : value);
  }

  #unusualInteger(field: JsonField, listed: boolean, out: WireOutput): void {
    const { json, pos } = this;
    this.extraWork += NUMBER_WORK;
    const end = this.tokenEnd();
    if (end - pos > MAX_NUMBER_CHARS) throw this.#invalid(field);
    const value =
      json[pos] === QUOTE
        ? integerOfString(toUtf8(this.#decodedText(pos, end - 1)))
        : integerOfNumber(toLatin1(json, pos, end));
    const range = RANGES[field.kind];
    if (value === undefined || value < range.min || value > range.max) throw this.#invalid(field);
    this.pos = end;
    if (value === 0n) this.#writeInteger(field, listed, out, 0);
    else {
      if (!listed) out.varint(field.tag);
      out.bigInteger(value);
    }
  }

  #decodedText(open: number, close: number): Uint8Array {
    const { decoded } = this;
    return decoded?.open === open ? decoded.text : decodeString(this.json, open, close);
  }

  /** A value in a list is packed: its tag stands before the list. */
  #writeInteger(field: JsonField, listed: boolean, out: WireOutput, value: number): void {
    if (listed) out.integer(value);
    else if (value !== 0 || field.oneofBit !== 0) {
      out.varint(field.tag);
      out.integer(value);
    }
  }
}

/** Writes a field of decoded base64; false, with nothing written, if it is not base64. */
function putDecoded(
  out: WireOutput,
  tag: number,
  json: Uint8Array,
  start: number,
  end: number,
  size: number,
): boolean {
  const before = out.at;
  out.reserve(size + MAX_PREFIX_BYTES);
  out.varint(tag);
  out.varint(size);
  if (!readBase64(json, start, end, out.bytes, out.at, size)) {
    out.at = before;
    return false;
  }
  out.at += size;
  return true;
}

function withoutLineBreaks(text: Uint8Array): Uint8Array {
  if (!text.includes(0x0a) && !text.includes(0x0d)) return text;
  const kept = new Uint8Array(text.length);
  let size = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at];
    if (byte !== 0x0a && byte !== 0x0d) kept[size++] = byte;
  }
  return kept.subarray(0, size);
}

function endsNumber(byte: number | undefined): boolean {
  return byte === 0x2c || byte === 0x7d || byte === 0x5d || byte === 0x20;
}

function fits(field: JsonField, value: number, negative: boolean): boolean {
  switch (field.kind) {
    case "int64":
      return true;
    case "uint64":
      return !negative || value === 0;
    case "uint32":
      return value <= MAX_32_BIT && (!negative || value === 0);
    default:
      return value <= MAX_32_BIT;
  }
}
