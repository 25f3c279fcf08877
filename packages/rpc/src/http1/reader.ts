/**
 * Splits the bytes of a connection into requests (RFC 9112): heads, and bodies by content-length or
 * in chunks. The caller pulls, so that it can stop between any two pieces.
 *
 *     push(bytes) ... readHead() -> Http1Head    then until the end of the body:
 *                     readBody() -> piece | BODY_END
 *     both -> undefined   more bytes are needed
 *          -> Refusal     a rule is broken; nothing more can be read
 */
import { alloc, EMPTY, toLatin1 } from "@quorate/proto";
import { areTrailers, type Http1Head, mayBegin, parseHead } from "./head.ts";
import type { Http1Limits } from "./limits.ts";
import {
  BAD_CHUNK,
  BAD_TRAILERS,
  BARE_LF,
  EXTENSIONS_TOO_LARGE,
  HEAD_TOO_LARGE,
  NOT_HTTP,
  type Refusal,
  TRAILERS_TOO_LARGE,
} from "./refusal.ts";

const CR = 13;
const LF = 10;
const SEMICOLON = 59;
/** More digits than any chunk needs, and few enough for an exact number. */
const MAX_CHUNK_DIGITS = 12;
/** Extensions of a chunk (RFC 9112 section 7.1.1), without the optional spaces. */
const EXTENSIONS =
  /^(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[^"\\]|\\.)*"))?)+$/;
/** The end of a request line: " HTTP/1.1" and CR. */
const VERSION_BYTES = 10;

/** The body is complete. */
export const BODY_END = "end";

export type BodyPart = Uint8Array | typeof BODY_END | Refusal | undefined;

/** What the reader expects within a body. */
type BodyState = "sized" | "chunk-line" | "chunk-data" | "chunk-end" | "trailers" | "done";

export class Http1Reader {
  readonly #limits: Http1Limits;
  readonly #input = new Input();
  /** The position up to which the present lines were searched, and where the last one begins. */
  #scanned = 0;
  #lineAt = 0;
  #isFirstLine = true;
  #state: BodyState = "done";
  /** Bytes of the sized body or of the chunk that are still to come. */
  #left = 0;
  #extensionBytes = 0;

  constructor(limits: Http1Limits) {
    this.#limits = limits;
  }

  /** Bytes that were received and not yet consumed. */
  get bufferedBytes(): number {
    return this.#input.length;
  }

  /** Bytes of the present body that are still to come; undefined in a chunked one. */
  get leftBytes(): number | undefined {
    return this.#state === "sized" || this.#state === "done" ? this.#left : undefined;
  }

  /** The size of the latest head. */
  headBytes = 0;

  /** Takes bytes from the client, which must not change any more. */
  push(chunk: Uint8Array): void {
    const moved = this.#input.push(chunk);
    this.#scanned += moved;
    this.#lineAt += moved;
  }

  /** Everything that was pushed; the reader then has nothing. */
  takeAll(): Uint8Array {
    return this.#input.take(this.#input.length);
  }

  /** The head of the next request; to be called when the body of the one before is complete. */
  readHead(): Http1Head | Refusal | undefined {
    const input = this.#input;
    if (this.#isFirstLine && this.#scanned === input.start) {
      if (input.length === 0) return undefined;
      const first = input.bytes[input.start];
      if (first !== CR && !mayBegin(first)) return first === LF ? BARE_LF : NOT_HTTP;
    }
    const end = this.#findEmptyLine(this.#limits.maxHeaderListBytes, HEAD_TOO_LARGE);
    if (typeof end !== "number") return end;
    this.headBytes = end - input.start;
    const head = parseHead(input.bytes, input.start, end, this.#limits.maxFields);
    this.#consumeLines(end);
    if (!("method" in head)) return head;
    this.#left = Math.max(0, head.contentLength);
    this.#extensionBytes = 0;
    this.#state =
      head.contentLength === -1 ? "chunk-line" : head.contentLength === 0 ? "done" : "sized";
    return head;
  }

  /** The next piece of the body. Pieces are never empty. */
  readBody(): BodyPart {
    for (;;) {
      switch (this.#state) {
        case "done":
          return BODY_END;
        case "sized":
        case "chunk-data":
          return this.#piece();
        case "chunk-line": {
          const wrong = this.#chunkLine();
          if (wrong !== true) return wrong;
          break;
        }
        case "chunk-end": {
          const { bytes, start, length } = this.#input;
          if (length > 0 && bytes[start] !== CR) return BAD_CHUNK;
          if (length < 2) return undefined;
          if (bytes[start + 1] !== LF) return BAD_CHUNK;
          this.#input.start += 2;
          this.#beginLine();
          this.#state = "chunk-line";
          break;
        }
        case "trailers": {
          const end = this.#findEmptyLine(this.#limits.maxTrailerBytes, TRAILERS_TOO_LARGE);
          if (typeof end !== "number") return end;
          if (!areTrailers(this.#input.bytes, this.#input.start, end)) return BAD_TRAILERS;
          this.#consumeLines(end);
          this.#state = "done";
          this.#left = 0;
        }
      }
    }
  }

  #piece(): Uint8Array | undefined {
    const size = Math.min(this.#left, this.#input.length);
    if (size === 0) return undefined;
    this.#left -= size;
    if (this.#left === 0) this.#state = this.#state === "sized" ? "done" : "chunk-end";
    const piece = this.#input.take(size);
    this.#beginLine();
    return piece;
  }

  /** Reads the line before a chunk: its size in hex, perhaps extensions. True when it is read. */
  #chunkLine(): Refusal | true | undefined {
    const { bytes, start, end } = this.#input;
    let at = start;
    let size = 0;
    for (; at < end; at++) {
      const digit = hexDigit(bytes[at]);
      if (digit === -1) break;
      if (at - start === MAX_CHUNK_DIGITS) return BAD_CHUNK;
      size = size * 16 + digit;
    }
    if (at === end) return undefined;
    if (at === start) return BAD_CHUNK;
    if (bytes[at] === SEMICOLON) {
      const digitsEnd = at;
      at = Math.max(at, this.#scanned);
      while (at < end && isExtension(bytes[at])) at++;
      this.#scanned = at;
      if (this.#extensionBytes + at - digitsEnd > this.#limits.maxChunkExtensionBytes)
        return EXTENSIONS_TOO_LARGE;
      if (at + 1 < end) {
        this.#extensionBytes += at - digitsEnd;
        if (!EXTENSIONS.test(toLatin1(bytes, digitsEnd, at))) return BAD_CHUNK;
      }
    }
    if (at < end && bytes[at] !== CR) return BAD_CHUNK;
    if (at + 1 >= end) return undefined;
    if (bytes[at + 1] !== LF) return BAD_CHUNK;
    this.#input.start = at + 2;
    this.#beginLine();
    this.#left = size;
    this.#state = size === 0 ? "trailers" : "chunk-data";
    return true;
  }

  /**
   * The position behind the next empty line; undefined if it has not arrived. All lines up to there
   * end with CRLF.
   */
  #findEmptyLine(maxBytes: number, tooLarge: Refusal): number | Refusal | undefined {
    const input = this.#input;
    const { bytes, end } = input;
    let at = this.#scanned;
    for (; at < end; at++) {
      if (bytes[at] !== LF) continue;
      if (at === this.#lineAt || bytes[at - 1] !== CR) return BARE_LF;
      const isEmpty = at === this.#lineAt + 1;
      if (this.#isFirstLine && this.#state === "done") {
        if (!isEmpty) {
          const wrong = badRequestLine(bytes, this.#lineAt, at);
          if (wrong !== undefined) return wrong;
        } else if (this.#lineAt === input.start) {
          // One empty line before a request is ignored (RFC 9112 section 2.2).
          input.start = at + 1;
          this.#lineAt = at + 1;
          this.#isFirstLine = false;
          continue;
        }
      }
      this.#isFirstLine = false;
      this.#lineAt = at + 1;
      if (!isEmpty) continue;
      if (at + 1 - input.start > maxBytes) return tooLarge;
      this.#scanned = at + 1;
      return at + 1;
    }
    this.#scanned = at;
    return end - input.start > maxBytes ? tooLarge : undefined;
  }

  #consumeLines(end: number): void {
    this.#input.start = end;
    this.#beginLine();
  }

  #beginLine(): void {
    this.#input.shrink();
    this.#scanned = this.#input.start;
    this.#lineAt = this.#input.start;
    this.#isFirstLine = true;
  }
}

/** What is wrong with a request line that ends with bytes[lf]; undefined if it claims HTTP/1. */
function badRequestLine(bytes: Uint8Array, start: number, lf: number): Refusal | undefined {
  const at = lf - VERSION_BYTES;
  const isHttp =
    at > start &&
    bytes[at] === 32 &&
    bytes[at + 1] === 72 &&
    bytes[at + 2] === 84 &&
    bytes[at + 3] === 84 &&
    bytes[at + 4] === 80 &&
    bytes[at + 5] === 47;
  return isHttp ? undefined : NOT_HTTP;
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/** Visible characters, space, tab and obs-text. */
function isExtension(code: number): boolean {
  return (code >= 32 && code !== 127) || code === 9;
}

const MIN_OWNED_BYTES = 1024;

/**
 * The bytes that were received and not yet consumed: one range of one array. A chunk is used in
 * place; only what an earlier chunk left over is copied, in total at most twice per byte.
 */
class Input {
  /** bytes[start, end) are to be consumed; consumed bytes do not change any more. */
  bytes: Uint8Array = EMPTY;
  start = 0;
  end = 0;
  /** `bytes` is an array of this class, with space behind `end`. */
  #isOwned = false;

  get length(): number {
    return this.end - this.start;
  }

  /** Appends a chunk, which must not change any more. Returns by how much positions have moved. */
  push(chunk: Uint8Array): number {
    const { start, end } = this;
    if (start === end) {
      this.bytes = chunk;
      this.start = 0;
      this.end = chunk.length;
      this.#isOwned = false;
      return -start;
    }
    if (this.#isOwned && end + chunk.length <= this.bytes.length) {
      this.bytes.set(chunk, end);
      this.end += chunk.length;
      return 0;
    }
    const size = end - start;
    const owned = alloc(Math.max(MIN_OWNED_BYTES, 2 * (size + chunk.length)));
    owned.set(this.bytes.subarray(start, end));
    owned.set(chunk, size);
    this.bytes = owned;
    this.start = 0;
    this.end = size + chunk.length;
    this.#isOwned = true;
    return -start;
  }

  /** Consumes the next n bytes, and returns them. */
  take(n: number): Uint8Array {
    const from = this.start;
    this.start += n;
    return this.bytes.subarray(from, this.start);
  }

  /** Lets go of an array whose bytes are all consumed. */
  shrink(): void {
    if (this.start !== this.end) return;
    this.bytes = EMPTY;
    this.start = 0;
    this.end = 0;
    this.#isOwned = false;
  }
}
