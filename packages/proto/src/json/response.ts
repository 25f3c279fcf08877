/**
 * A response's protobuf to JSON, straight from bytes to bytes, as etcd's gateway writes it: names
 * of the .proto file, defaults left out, 64-bit integers in quotes, bytes in base64, enums by name,
 * in the order of declaration. No space stands between tokens.
 *
 * The fields of the message must come in that order too, each once: as every encoder writes them.
 */
import { alloc, EMPTY, fromLatin1 } from "../wire/bytes.ts";
import { WireError } from "../wire/error.ts";
import { MAX_NESTING_DEPTH, type Reader } from "../wire/reader.ts";
import { base64Length, putBase64 } from "./base64.ts";
import { MAX_DECIMAL_BYTES, putDecimal, putDecimalWords, putSignedWords } from "./decimal.ts";
import { MAX_ESCAPE_BYTES, putEscaped } from "./escape.ts";
import type { JsonForm, ResponseTranscoding, WirePieces } from "./interface.ts";
import type { JsonField, JsonMessage } from "./schema.ts";
import { WireInput } from "./wire-input.ts";

/** Output of one call. A field begins only below it: a piece is longer by one value at most. */
const PIECE_BYTES: number = 16 << 10;
/** Space beyond, for the fields around a boundary. */
const SPARE_BYTES = 4096;
const FIRST_BYTES = 4096;
/** A larger buffer is not kept for the next response. */
const MAX_KEPT_BYTES = 1 << 20;
/** Brackets, a comma and quotes beside a label and a value. */
const MAX_MARKS = 8;
const CHUNK_START: Uint8Array = fromLatin1('{"result":').slice();
const CHUNK_END: Uint8Array = fromLatin1("}\n").slice();

const TRUE: Uint8Array = fromLatin1("true").slice();
const FALSE: Uint8Array = fromLatin1("false").slice();
const COMMA = 0x2c;
const QUOTE = 0x22;

/** The buffer of wireToJson, between two calls. */
let spare: Uint8Array = new Uint8Array(FIRST_BYTES);

/** The message that encloses the present one. */
interface Frame {
  readonly type: JsonMessage;
  readonly end: number;
  readonly last: number;
  readonly oneofs: number;
  readonly parent: Frame | undefined;
}

class Transcoding {
  readonly #input: WireInput;
  readonly #reader: Reader;
  readonly #html: boolean;
  out: Uint8Array;
  at = 0;
  #type: JsonMessage;
  /** The offset behind the present message. */
  #end = Number.POSITIVE_INFINITY;
  /** The index of the field that was written last, -1 for none. */
  #last = -1;
  /** Whether that field is a list whose bracket is open. */
  #list = false;
  #oneofs = 0;
  #parent: Frame | undefined;
  #depth = 0;
  #opened = false;
  done = false;

  constructor(type: JsonMessage, message: Uint8Array | WirePieces, html: boolean, out: Uint8Array) {
    this.#type = type;
    this.#input = new WireInput(message);
    this.#reader = this.#input.reader;
    this.#html = html;
    this.out = out;
  }

  /** Writes fields until `limit` bytes are written or the message is complete. */
  run(limit: number): void {
    const input = this.#input;
    if (!this.#opened) {
      this.#opened = true;
      this.#byte(0x7b);
    }
    while (this.at < limit) {
      if (this.#parent === undefined ? input.atEnd() : this.#reader.offset >= this.#end) {
        this.#closeMessage();
        if (this.done) return;
      } else this.#field();
    }
  }

  /** Appends bytes as they are. */
  put(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    for (let i = 0; i < bytes.length; i++) this.out[this.at + i] = bytes[i];
    this.at += bytes.length;
  }

  #reserve(size: number): void {
    if (this.out.length - this.at >= size) return;
    const larger = new Uint8Array(Math.max(this.out.length * 2, this.at + size));
    larger.set(this.out.subarray(0, this.at));
    this.out = larger;
  }

  #byte(byte: number): void {
    this.#reserve(1);
    this.out[this.at++] = byte;
  }

  #field(): void {
    this.#input.head();
    const tag = this.#reader.tag();
    const field = this.#type.byNumber(tag >>> 3);
    if (field === undefined) this.#skip(tag);
    else if (tag === field.tag) {
      if (field.message !== undefined) this.#openMessage(field, field.message);
      else if ((tag & 7) === 2) this.#text(field);
      else this.#number(field);
    } else if (field.repeated && tag === (field.tag | 2)) this.#packed(field);
    else this.#skip(tag);
  }

  /** As protobuf does with fields that it does not know. */
  #skip(tag: number): void {
    const input = this.#input;
    if ((tag & 7) === 2) input.content(input.size());
    else this.#reader.skip(tag, {});
  }

  /** Writes what stands before the value of a field, and makes space for `size` bytes behind it. */
  #label(field: JsonField, size: number): void {
    const { label } = field;
    this.#reserve(label.length + size + MAX_MARKS);
    const { out } = this;
    const last = this.#last;
    if (field.index === last && field.repeated) {
      out[this.at++] = COMMA;
      return;
    }
    if (field.index <= last || (this.#oneofs & field.oneofBit) !== 0)
      throw new WireError(`${this.#type.typeName}.${field.name} out of order`, this.#reader.offset);
    if (this.#list) out[this.at++] = 0x5d;
    if (last >= 0) out[this.at++] = COMMA;
    let { at } = this;
    for (let i = 0; i < label.length; i++) out[at++] = label[i];
    if (field.repeated) out[at++] = 0x5b;
    this.at = at;
    this.#list = field.repeated;
    this.#last = field.index;
    this.#oneofs |= field.oneofBit;
  }

  #openMessage(field: JsonField, type: JsonMessage): void {
    const size = this.#input.size();
    const { offset } = this.#reader;
    const end = offset + size;
    if (end > this.#end) throw new WireError("length past the end", offset);
    if (++this.#depth > MAX_NESTING_DEPTH) throw new WireError("messages nested too deep", offset);
    this.#label(field, 1);
    this.#parent = {
      type: this.#type,
      end: this.#end,
      last: this.#last,
      oneofs: this.#oneofs,
      parent: this.#parent,
    };
    this.out[this.at++] = 0x7b;
    this.#type = type;
    this.#end = end;
    this.#last = -1;
    this.#list = false;
    this.#oneofs = 0;
  }

  #closeMessage(): void {
    const frame = this.#parent;
    this.#reserve(2);
    if (this.#list) this.out[this.at++] = 0x5d;
    this.out[this.at++] = 0x7d;
    if (frame === undefined) {
      this.done = true;
      return;
    }
    const { offset } = this.#reader;
    if (offset > this.#end) throw new WireError("length past the end", offset);
    this.#depth--;
    this.#type = frame.type;
    this.#end = frame.end;
    this.#last = frame.last;
    this.#list = frame.type.fields[frame.last].repeated;
    this.#oneofs = frame.oneofs;
    this.#parent = frame.parent;
  }

  #text(field: JsonField): void {
    const input = this.#input;
    const size = input.size();
    if (size === 0 && !field.repeated && field.oneofBit === 0) return;
    const start = input.content(size);
    const isBytes = field.kind === "bytes";
    this.#label(field, isBytes ? base64Length(size) : size * MAX_ESCAPE_BYTES);
    const { out } = this;
    out[this.at++] = QUOTE;
    const { bytes, offset } = this.#reader;
    const end = start + size;
    const at = isBytes
      ? putBase64(out, this.at, bytes, start, end)
      : putEscaped(out, this.at, bytes, start, end, this.#html);
    if (at < 0) {
      const error = new WireError("invalid UTF-8", offset - size);
      throw error.locate(this.#type.typeName, field.name);
    }
    out[at] = QUOTE;
    this.at = at + 1;
  }

  #number(field: JsonField): void {
    const lo = this.#reader.varint();
    const { hi } = this.#reader;
    if ((lo | hi) === 0 && !field.repeated && field.oneofBit === 0) return;
    this.#label(field, MAX_DECIMAL_BYTES);
    this.#integer(field, lo, hi);
  }

  #packed(field: JsonField): void {
    const input = this.#input;
    const reader = this.#reader;
    // The list is whole in one piece, so that its end is an offset in the present bytes.
    const start = input.content(input.size());
    const end = reader.pos;
    reader.pos = start;
    while (reader.pos < end) this.#number(field);
    if (reader.pos !== end) throw new WireError("length past the end", reader.offset);
  }

  #integer(field: JsonField, lo: number, hi: number): void {
    const { out } = this;
    switch (field.kind) {
      case "int64":
      case "uint64":
        out[this.at++] = QUOTE;
        this.at =
          field.kind === "int64"
            ? putSignedWords(out, this.at, lo, hi)
            : putDecimalWords(out, this.at, lo, hi);
        out[this.at++] = QUOTE;
        break;
      case "uint32":
        this.at = putDecimal(out, this.at, lo);
        break;
      case "bool":
        this.put((lo | hi) === 0 ? FALSE : TRUE);
        break;
      default: {
        const name = field.enumType?.quoted.get(lo | 0);
        // An enum's value without a name, and an int32, are numbers.
        if (name === undefined) this.at = putSignedWords(out, this.at, lo, ((lo | 0) >> 31) >>> 0);
        else this.put(name);
      }
    }
  }
}

/** A response in pieces. */
class Pieces implements ResponseTranscoding {
  readonly #message: Transcoding;
  readonly #form: JsonForm;
  #begun = false;

  constructor(type: JsonMessage, message: Uint8Array | WirePieces, form: JsonForm) {
    this.#message = new Transcoding(type, message, form === "chunk", EMPTY);
    this.#form = form;
  }

  next(): Uint8Array | undefined {
    const message = this.#message;
    if (message.done) return undefined;
    // A piece must not change after it was returned.
    message.out = alloc(PIECE_BYTES + SPARE_BYTES);
    message.at = 0;
    if (!this.#begun && this.#form === "chunk") message.put(CHUNK_START);
    this.#begun = true;
    message.run(PIECE_BYTES);
    if (message.done && this.#form === "chunk") message.put(CHUNK_END);
    return message.out.subarray(0, message.at);
  }
}

/**
 * Transcodes a response step by step.
 * @param message the encoded message, whole or in pieces; it must not change while this is used
 */
export function transcodeResponse(
  type: JsonMessage,
  message: Uint8Array | readonly Uint8Array[] | WirePieces,
  form: JsonForm = "message",
): ResponseTranscoding {
  if (message instanceof Uint8Array || "next" in message) return new Pieces(type, message, form);
  const parts = message.values();
  return new Pieces(type, { next: () => parts.next().value }, form);
}

/**
 * Transcodes a response at once: for messages up to some 100 KiB. Throws WireError for a malformed
 * message.
 */
export function wireToJson(
  type: JsonMessage,
  message: Uint8Array,
  form: JsonForm = "message",
): Uint8Array {
  const transcoding = new Transcoding(type, message, form === "chunk", spare);
  if (form === "chunk") transcoding.put(CHUNK_START);
  transcoding.run(Number.POSITIVE_INFINITY);
  if (form === "chunk") transcoding.put(CHUNK_END);
  const { out, at } = transcoding;
  if (out.length <= MAX_KEPT_BYTES) spare = out;
  const json = alloc(at);
  json.set(out.subarray(0, at));
  return json;
}
