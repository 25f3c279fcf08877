/** Why protojson would refuse a value, before its position is turned into line and column. */
import { toUtf8 } from "../wire/bytes.ts";
import { quoteBytes } from "./go-text.ts";
import { JsonError } from "./json-error.ts";
import { countChars } from "./utf8.ts";

type Kind = "syntax" | "value" | "half" | "grammar";

/** Bytes of an escape with a code. */
export const ESCAPE_BYTES = 6;

/** The longest part of the input that an error quotes; etcd quotes all of a token. */
const MAX_QUOTED_BYTES = 4096;

/** The token json[start, end), which is UTF-8, for an error's text. */
export function quoted(json: Uint8Array, start: number, end: number): string {
  if (end - start <= MAX_QUOTED_BYTES) return toUtf8(json, start, end);
  let cut = start + MAX_QUOTED_BYTES;
  while ((json[cut] & 0xc0) === 0x80) cut--;
  return `${toUtf8(json, start, cut)}...`;
}

/** Thrown inside of the decoder, and turned into a JsonError at its edge. */
export class Refusal {
  readonly #kind: Kind;
  readonly #at: number;
  readonly #text: string;
  /** Of half a pair: where the other half should be. */
  readonly #next: number;

  private constructor(kind: Kind, at: number, text: string, next = 0) {
    this.#kind = kind;
    this.#at = at;
    this.#text = text;
    this.#next = next;
  }

  /** Broken JSON; the text comes from JsonScanner. */
  static readonly grammar: Refusal = new Refusal("grammar", 0, "");

  /** A value of another form than the message's: the token at [start, end). */
  static unexpectedToken(json: Uint8Array, start: number, end: number): Refusal {
    return new Refusal("syntax", start, `unexpected token ${quoted(json, start, end)}`);
  }

  /** A string, whose token begins at `start`, with malformed UTF-8. */
  static invalidUtf8(start: number): Refusal {
    return new Refusal("syntax", start, "invalid UTF-8 in string");
  }

  /** A string, whose token begins at `start`, with half of a surrogate pair before `next`. */
  static halfPair(start: number, next: number): Refusal {
    return new Refusal("half", start, "", next);
  }

  /** A value or a name that does not fit, at `at`. */
  static value(at: number, text: string): Refusal {
    return new Refusal("value", at, text);
  }

  /**
   * The error with etcd's text, for the value json[start, end). Lines and columns count from its
   * start, columns in characters. Throws an Error for broken JSON, which JsonScanner refuses.
   */
  toError(json: Uint8Array, start: number, end: number): JsonError {
    if (this.#kind === "grammar") throw new Error("the scanner took JSON that the decoder refused");
    if (this.#kind === "half" && end - this.#next < ESCAPE_BYTES)
      return new JsonError("proto: unexpected EOF");
    let line = 1;
    let lineStart = start;
    for (let at = start; at < this.#at; at++) {
      if (json[at] !== 0x0a) continue;
      line++;
      lineStart = at + 1;
    }
    const place = `(line ${line}:${countChars(json, lineStart, this.#at) + 1}): `;
    if (this.#kind === "value") return new JsonError(`proto: ${place}${this.#text}`);
    return new JsonError(`proto: syntax error ${place}${this.#syntaxText(json)}`);
  }

  #syntaxText(json: Uint8Array): string {
    if (this.#kind !== "half") return this.#text;
    const half = json.subarray(this.#next, this.#next + ESCAPE_BYTES);
    return `invalid escape code ${quoteBytes(half)} in string`;
  }
}
