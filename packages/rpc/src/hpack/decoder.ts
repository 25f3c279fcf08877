/**
 * HPACK's decoder (RFC 7541): header blocks in, lists of fields out. Each connection has one. It
 * must decode every block in the order of arrival, even of refused requests, because each may
 * change the table.
 */
import { alloc, EMPTY, toLatin1 } from "@quorate/proto";
import { DynamicTable } from "./dynamic-table.ts";
import { HpackError } from "./errors.ts";
import { HeaderField, nameIdOf } from "./header-field.ts";
import { huffmanDecode, maxDecodedBytes } from "./huffman.ts";
import { STATIC_TABLE, STATIC_TABLE_LENGTH } from "./static-table.ts";

/** No larger integer can occur in a block that fits into memory. */
const MAX_INTEGER = 2 ** 28;

/**
 * Buffer for decoding Huffman-coded strings; grows to the longest. Shared by all decoders: it keeps
 * no data between calls.
 */
let scratch = alloc(1024);

export class HpackDecoder {
  readonly #maxTableBytes: number;
  readonly #maxListBytes: number;
  readonly #table: DynamicTable;
  #bytes: Uint8Array = EMPTY;
  #at = 0;
  #end = 0;
  /** Whether the fields of the last block exceeded maxListBytes: the rest was dropped. */
  truncated = false;

  /**
   * @param maxTableBytes our SETTINGS_HEADER_TABLE_SIZE: the initial size of the table and the
   * largest that the peer may set.
   * @param maxListBytes the size of a header list, counted as in RFC 9113 section 6.5.2, beyond
   * which fields are dropped.
   */
  constructor(maxTableBytes: number, maxListBytes: number) {
    this.#maxTableBytes = maxTableBytes;
    this.#maxListBytes = maxListBytes;
    this.#table = new DynamicTable(maxTableBytes);
  }

  /**
   * Changes whenever an index may have a new meaning. A block that does not change it decodes to
   * the same fields until it changes.
   */
  get tableVersion(): number {
    return this.#table.version;
  }

  /** Bytes in the dynamic table, as RFC 7541 counts them. */
  get tableBytes(): number {
    return this.#table.sizeBytes;
  }

  /**
   * The fields of the block bytes[start, end), in order. Throws HpackError; the decoder cannot be
   * used after that.
   */
  decode(bytes: Uint8Array, start: number, end: number): HeaderField[] {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.truncated = false;
    const fields: HeaderField[] = [];
    let listBytes = 0;
    while (this.#at < end) {
      const first = bytes[this.#at];
      let field: HeaderField;
      if (first >= 0x80) field = this.#entry(this.#integer(0x7f));
      else if (first >= 0x40) {
        field = this.#literal(this.#integer(0x3f));
        this.#table.insert(field);
      } else if (first >= 0x20) {
        if (fields.length > 0 || this.truncated)
          throw new HpackError("a table size update comes behind a field");
        this.#resize(this.#integer(0x1f));
        continue;
      } else field = this.#literal(this.#integer(0x0f));
      listBytes += field.sizeBytes;
      if (listBytes <= this.#maxListBytes) fields.push(field);
      else this.truncated = true;
    }
    // Releases the block's memory.
    this.#bytes = EMPTY;
    return fields;
  }

  #entry(index: number): HeaderField {
    const field =
      index <= STATIC_TABLE_LENGTH
        ? STATIC_TABLE[index]
        : this.#table.at(index - STATIC_TABLE_LENGTH - 1);
    if (index === 0 || field === undefined) throw new HpackError(`no field has the index ${index}`);
    return field;
  }

  #literal(nameIndex: number): HeaderField {
    if (nameIndex === 0) {
      const name = this.#string();
      return new HeaderField(name, this.#string(), nameIdOf(name));
    }
    const named = this.#entry(nameIndex);
    return new HeaderField(named.name, this.#string(), named.nameId);
  }

  #resize(maxSizeBytes: number): void {
    if (maxSizeBytes > this.#maxTableBytes)
      throw new HpackError(`a table of ${maxSizeBytes} bytes is more than ${this.#maxTableBytes}`);
    this.#table.resize(maxSizeBytes);
  }

  /** An integer (section 5.1) whose prefix is the bits `mask` of the current byte. */
  #integer(mask: number): number {
    const bytes = this.#bytes;
    let value = bytes[this.#at++] & mask;
    if (value < mask) return value;
    for (let scale = 1; ; scale *= 128) {
      if (this.#at >= this.#end) throw new HpackError("the block ends within an integer");
      const byte = bytes[this.#at++];
      value += (byte & 0x7f) * scale;
      if (value > MAX_INTEGER || scale > MAX_INTEGER)
        throw new HpackError("an integer is too large");
      if (byte < 0x80) return value;
    }
  }

  /** A string literal (section 5.2). */
  #string(): string {
    if (this.#at >= this.#end) throw new HpackError("the block ends before a string");
    const huffman = this.#bytes[this.#at] >= 0x80;
    const length = this.#integer(0x7f);
    const start = this.#at;
    const end = start + length;
    if (end > this.#end) throw new HpackError("the block ends within a string");
    this.#at = end;
    if (!huffman) return toLatin1(this.#bytes, start, end);
    const capacity = maxDecodedBytes(length);
    if (scratch.length < capacity) scratch = alloc(capacity);
    return toLatin1(scratch, 0, huffmanDecode(this.#bytes, start, end, scratch));
  }
}
