/**
 * A request's JSON to protobuf, straight from bytes to bytes, as etcd's gateway does: grpc-gateway
 * v2.29 with protojson, unknown fields and enum names ignored. A frame for each open object; lists
 * live in the frame of their object.
 *
 *     { "name" : value , ... }        step = one name with a scalar, one bracket, or one element
 *
 * The decoder takes only what both of etcd's parsers take. If it refuses something, JsonScanner
 * reads the whole value first, because in etcd its errors come first.
 */
import { EMPTY, toUtf8 } from "../wire/bytes.ts";
import type { RequestTranscoding } from "./interface.ts";
import { JsonError } from "./json-error.ts";
import { quoted, Refusal } from "./refusal.ts";
import { ScalarReader } from "./scalars.ts";
import { isSpace, JsonScanner, MAX_GATEWAY_DEPTH, UNEXPECTED_EOF } from "./scanner.ts";
import { hashStep, type JsonField, type JsonMessage } from "./schema.ts";
import { checkStrings, MAX_STEP_BYTES, StringDecoding } from "./strings.ts";
import { type Opened, WireOutput } from "./wire-output.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSED = -1;
/** extraWork of a name or an element, and of a value of an unknown field. */
const STEP_WORK = 8;
const SKIP_WORK = 16;
/** What the scanner takes for a byte, in the same unit. */
const SCAN_WORK = 2;
/** The wire type of a packed list, whose single values are varints. */
const PACKED = 2;

/** An object that is being read. */
class Frame {
  readonly type: JsonMessage;
  readonly parent: Frame | undefined;
  readonly opened: Opened | undefined;
  /** Fields that were named, by index, in words of 32. */
  seen = 0;
  seenMore: Set<number> | undefined;
  oneofs = 0;
  /** The list that is being read, and its packed values. */
  list: JsonField | undefined;
  packed: Opened | undefined;
  /** Whether nothing stands behind the last opening bracket yet. */
  first = true;

  constructor(type: JsonMessage, parent: Frame | undefined, opened: Opened | undefined) {
    this.type = type;
    this.parent = parent;
    this.opened = opened;
  }

  /** Notes a field; false if it was there already. */
  name(field: JsonField): boolean {
    if (field.index < 32) {
      const bit = 1 << field.index;
      if ((this.seen & bit) !== 0) return false;
      this.seen |= bit;
      return true;
    }
    this.seenMore ??= new Set();
    if (this.seenMore.has(field.index)) return false;
    this.seenMore.add(field.index);
    return true;
  }
}

class Transcoding extends ScalarReader implements RequestTranscoding {
  readonly #start: number;
  readonly #out = new WireOutput();
  /** Undefined when the message is complete. */
  #frame: Frame | undefined;
  #isObject = true;
  /** Open objects and lists. */
  #depth = 1;
  /** Reads a value that is skipped; up to where its strings are checked. */
  #skipping: JsonScanner | undefined;
  #checked = 0;
  /** A scalar that waits for its string, which is decoded in steps. */
  #waiting: { readonly field: JsonField; readonly listed: boolean } | undefined;
  /** Why the value is refused, once it is. */
  #refusal: Refusal | undefined;
  #scanner: JsonScanner | undefined;

  constructor(type: JsonMessage, json: Uint8Array) {
    super(json);
    const first = this.#space();
    this.#start = this.pos;
    if (this.pos === json.length) this.#frame = undefined;
    else {
      this.#frame = new Frame(type, undefined, undefined);
      this.#isObject = first === 0x7b;
      this.pos++;
    }
  }

  run(sliceBytes: number): Uint8Array | undefined {
    const end = this.pos + this.extraWork + sliceBytes;
    this.stepBytes = Math.min(MAX_STEP_BYTES, sliceBytes);
    if (this.#refusal === undefined) {
      try {
        if (!this.#isObject) throw this.#unexpected(this.#start);
        while (this.#frame !== undefined) {
          const stop = end - this.extraWork;
          if (this.pos >= stop) return undefined;
          this.extraWork += STEP_WORK;
          this.#step(this.#frame, stop);
        }
        return this.#out.at === 0 ? this.#empty() : this.#out.finish();
      } catch (refusal) {
        if (!(refusal instanceof Refusal)) throw refusal;
        this.#refusal = refusal;
        this.#out.release();
        this.pos = this.#start;
      }
    }
    const half = Math.max(1, Math.ceil(sliceBytes / SCAN_WORK));
    return this.#explain(this.#refusal, Math.min(this.pos + half, this.json.length));
  }

  #empty(): Uint8Array {
    this.#out.release();
    return EMPTY;
  }

  /** Throws the error that etcd reports; undefined while the scanner needs more slices. */
  #explain(refusal: Refusal, stop: number): undefined {
    this.#scanner ??= new JsonScanner();
    const end = this.#scanner.scan(this.json, this.pos, stop);
    this.pos = stop;
    if (end < 0 && stop < this.json.length) return undefined;
    if (end < 0 && !this.#scanner.endsHere()) throw new JsonError(UNEXPECTED_EOF);
    throw refusal.toError(this.json, this.#start, end < 0 ? stop : end);
  }

  #step(frame: Frame, stop: number): void {
    if (this.#waiting !== undefined) this.#decode(this.#waiting, stop);
    else if (this.#skipping !== undefined) this.#skip(this.#skipping, stop);
    else if (frame.list !== undefined) this.#element(frame, frame.list);
    else this.#member(frame);
  }

  /** Moves to the next byte that is not a space, and returns it. */
  #space(): number {
    const { json } = this;
    let byte = json[this.pos];
    while (byte <= 0x20 && isSpace(byte)) byte = json[++this.pos];
    return byte;
  }

  /**
   * The first byte of the next name or element, behind the comma; CLOSED if the bracket `close` was
   * there.
   */
  #next(frame: Frame, close: number): number {
    const byte = this.#space();
    if (byte === close) {
      this.pos++;
      this.#depth--;
      return CLOSED;
    }
    if (frame.first) {
      frame.first = false;
      return byte;
    }
    if (byte !== COMMA) throw Refusal.grammar;
    this.pos++;
    return this.#space();
  }

  #unexpected(at = this.pos): Refusal {
    this.pos = at;
    return Refusal.unexpectedToken(this.json, this.pos, this.tokenEnd());
  }

  #member(frame: Frame): void {
    const first = this.#next(frame, 0x7d);
    if (first === CLOSED) {
      this.#closeMessage(frame);
      return;
    }
    if (first !== QUOTE) throw Refusal.grammar;
    const nameAt = this.pos;
    const field = this.#name(frame.type);
    const nameEnd = this.pos;
    if (this.#space() !== 0x3a) throw Refusal.grammar;
    this.pos++;
    const value = this.#space();
    if (field === undefined) {
      this.#skipping = new JsonScanner(this.#depth);
      this.#checked = this.pos;
      this.extraWork += SKIP_WORK;
      return;
    }
    if (!frame.name(field))
      throw this.#badName(nameAt, nameEnd, (name) => `duplicate field ${name}`);
    if (value === 0x6e) this.pos = this.literalEnd("null");
    else if (field.repeated) this.#openList(frame, field, value);
    else {
      if ((frame.oneofs & field.oneofBit) !== 0) {
        const text = (name: string) => `error parsing ${name}, oneof ${field.oneof} is already set`;
        throw this.#badName(nameAt, nameEnd, text);
      }
      frame.oneofs |= field.oneofBit;
      if (field.message !== undefined) this.#openMessage(frame, field, field.message, value);
      else this.#scalar(field, false);
    }
  }

  #scalar(field: JsonField, listed: boolean): void {
    if (this.scalar(field, listed, this.#out)) return;
    this.decoded = new StringDecoding(this.json, this.pos, EMPTY);
    this.#waiting = { field, listed };
  }

  /** Decodes a part of the string that a scalar waits for; reads the scalar behind the last one. */
  #decode({ field, listed }: { field: JsonField; listed: boolean }, stop: number): void {
    const decoding = this.decoded!;
    const from = decoding.at;
    const isWhole = decoding.run(from + Math.max(1, stop - this.pos));
    if (!isWhole) {
      // The position stays at the string: what was read of it counts here.
      this.extraWork += decoding.at - from;
      return;
    }
    this.#waiting = undefined;
    this.scalar(field, listed, this.#out);
    this.decoded = undefined;
  }

  #badName(at: number, end: number, text: (name: string) => string): Refusal {
    return Refusal.value(at, text(quoted(this.json, at, end)));
  }

  /** The field that the string at `pos` names; moves behind it. */
  #name(type: JsonMessage): JsonField | undefined {
    const { json } = this;
    const start = this.pos + 1;
    let hash = 0;
    let at = start;
    for (; at < json.length; at++) {
      const byte = json[at];
      if (byte === QUOTE) break;
      if (byte < 0x20 || byte >= 0x80 || byte === 0x5c) return type.byName(toUtf8(this.text()));
      hash = hashStep(hash, byte);
    }
    this.pos = at + 1;
    return type.byNameBytes(json, start, at, hash);
  }

  #enter(): void {
    this.pos++;
    if (++this.#depth > MAX_GATEWAY_DEPTH) throw Refusal.grammar;
  }

  #openMessage(frame: Frame, field: JsonField, type: JsonMessage, byte: number): void {
    if (byte !== 0x7b) throw this.#unexpected();
    this.#enter();
    this.#out.varint(field.tag);
    this.#frame = new Frame(type, frame, this.#out.open());
  }

  #closeMessage(frame: Frame): void {
    if (frame.opened !== undefined) this.#out.close(frame.opened);
    this.#frame = frame.parent;
  }

  #openList(frame: Frame, field: JsonField, byte: number): void {
    if (byte !== 0x5b) throw this.#unexpected();
    this.#enter();
    frame.list = field;
    frame.first = true;
  }

  #element(frame: Frame, field: JsonField): void {
    const first = this.#next(frame, 0x5d);
    if (first === CLOSED) {
      if (frame.packed !== undefined) this.#out.close(frame.packed);
      frame.packed = frame.list = undefined;
      frame.first = false;
    } else if (field.message !== undefined) {
      this.#openMessage(frame, field, field.message, first);
    } else {
      if (field.kind !== "bytes" && field.kind !== "string" && frame.packed === undefined) {
        this.#out.varint(field.tag | PACKED);
        frame.packed = this.#out.open();
      }
      this.#scalar(field, true);
    }
  }

  /** Goes on with a value of an unknown field. */
  #skip(scanner: JsonScanner, stop: number): void {
    const part = Math.max(1, (stop - this.pos) / SCAN_WORK);
    const limit = Math.min(Math.ceil(this.pos + part), this.json.length);
    const start = this.pos;
    let end: number;
    try {
      end = scanner.scan(this.json, this.pos, limit);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      throw Refusal.grammar;
    }
    if (end < 0 && limit === this.json.length) throw Refusal.grammar;
    this.pos = end < 0 ? limit : end;
    this.extraWork += this.pos - start;
    const checked = checkStrings(this.json, this.#checked, this.pos);
    this.extraWork += checked - this.#checked;
    this.#checked = checked;
    if (end >= 0) this.#skipping = undefined;
  }
}

/** One request body on its way to protobuf; see RequestTranscoding. */
export function transcodeRequest(type: JsonMessage, body: Uint8Array): RequestTranscoding {
  return new Transcoding(type, body);
}

/** As transcodeRequest, at once: for bodies up to some 100 KiB. Throws JsonError. */
export function jsonToWire(type: JsonMessage, body: Uint8Array): Uint8Array {
  const transcoding = new Transcoding(type, body);
  for (;;) {
    const message = transcoding.run(Number.POSITIVE_INFINITY);
    if (message !== undefined) return message;
  }
}
