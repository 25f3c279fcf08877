/** HPACK (RFC 7541): the decoder, the encoder, and the dynamic table that each of them has. */
import { alloc, EMPTY, toLatin1, writeLatin1 } from "@quorate/proto";
import { HpackError } from "./errors.ts";
import { FIELD_OVERHEAD_BYTES, HeaderField, nameIdOf } from "./header-field.ts";
import { huffmanDecode, huffmanEncode, huffmanLength, maxDecodedBytes } from "./huffman.ts";
import { STATIC_TABLE, STATIC_TABLE_LENGTH } from "./static-table.ts";

/** No larger integer can occur in a block that fits into memory. */
const MAX_INTEGER = 2 ** 28;

/**
 * Buffer for decoding Huffman-coded strings; grows to the longest. Shared by all decoders: it keeps
 * no data between calls.
 */
let scratch = alloc(1024);

/**
 * Header blocks in, lists of fields out. Each connection has one. It must decode every block in the
 * order of arrival, even of refused requests, because each may change the table.
 */
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

/** How a field that is in neither table is written. */
export const Indexing = {
  /** Added to the dynamic table, for fields that repeat. */
  Add: 0x40,
  /** Written literally. */
  None: 0x00,
  /** Written literally, here and by every intermediary, for secrets. */
  Never: 0x10,
} as const;
export type Indexing = (typeof Indexing)[keyof typeof Indexing];

/** The initial size of the dynamic table (RFC 9113 section 6.5.2). */
export const DEFAULT_TABLE_BYTES = 4096;

export interface EncodableField {
  /** Lower case, one char a byte. */
  readonly name: string;
  readonly value: string;
  /** Default None. */
  readonly indexing?: Indexing;
}

/**
 * HPACK's encoder (RFC 7541). The caller decides for each field whether it goes into the dynamic
 * table: a server's responses have few fields, and two or three of them make up nearly all.
 */
export class HpackEncoder {
  readonly #maxTableBytes: number;
  readonly #table: DynamicTable;
  /**
   * The smallest size since the last block, if the table became smaller: it must be announced, and
   * then the current one.
   */
  #announceBytes: number | undefined;
  #out = alloc(256);
  #at = 0;

  /** @param maxTableBytes the largest size of the table, whatever the peer allows */
  constructor(maxTableBytes: number = DEFAULT_TABLE_BYTES) {
    this.#maxTableBytes = Math.min(maxTableBytes, DEFAULT_TABLE_BYTES);
    this.#table = new DynamicTable(this.#maxTableBytes);
    if (this.#maxTableBytes < DEFAULT_TABLE_BYTES) this.#announceBytes = this.#maxTableBytes;
  }

  /**
   * Changes whenever an index may have a new meaning or the next block must start with a table size
   * update.
   */
  get tableVersion(): number {
    return this.#table.version;
  }

  /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE. */
  limitTable(maxTableBytes: number): void {
    const sizeBytes = Math.min(maxTableBytes, this.#maxTableBytes);
    if (sizeBytes === this.#table.maxSizeBytes) return;
    this.#announceBytes = Math.min(this.#announceBytes ?? sizeBytes, sizeBytes);
    this.#table.resize(sizeBytes);
  }

  /**
   * The block of these fields, in order. Blocks must be sent in the order in which they were
   * encoded.
   */
  encode(fields: readonly EncodableField[]): Uint8Array {
    this.#at = 0;
    if (this.#announceBytes !== undefined) {
      this.#integer(0x20, 0x1f, this.#announceBytes);
      if (this.#announceBytes !== this.#table.maxSizeBytes)
        this.#integer(0x20, 0x1f, this.#table.maxSizeBytes);
      this.#announceBytes = undefined;
      // The table size update is part of this block only, so a cached copy of it would be wrong.
      this.#table.version++;
    }
    for (const field of fields)
      this.#field(field.name, field.value, field.indexing ?? Indexing.None);
    const block = new Uint8Array(this.#at);
    block.set(this.#out.subarray(0, this.#at));
    return block;
  }

  #field(name: string, value: string, indexing: Indexing): void {
    const { index, whole } = this.#find(name, value);
    // A field that does not fit would only empty the table.
    if (
      indexing === Indexing.Add &&
      name.length + value.length + FIELD_OVERHEAD_BYTES > this.#table.maxSizeBytes
    )
      indexing = Indexing.None;
    if (whole && indexing !== Indexing.Never) {
      this.#integer(0x80, 0x7f, index);
      return;
    }
    this.#integer(indexing, indexing === Indexing.Add ? 0x3f : 0x0f, index);
    if (index === 0) this.#string(name);
    this.#string(value);
    if (indexing === Indexing.Add) this.#table.insert(new HeaderField(name, value));
  }

  /** The index of the field, or of its name, or 0. */
  #find(name: string, value: string): { index: number; whole: boolean } {
    let named = 0;
    for (let i = 0; i < this.#table.length; i++) {
      const field = this.#table.at(i)!;
      if (field.name !== name) continue;
      const index = STATIC_TABLE_LENGTH + 1 + i;
      if (field.value === value) return { index, whole: true };
      if (named === 0) named = index;
    }
    for (let index = 1; index <= STATIC_TABLE_LENGTH; index++) {
      const field = STATIC_TABLE[index];
      if (field.name !== name) continue;
      if (field.value === value) return { index, whole: true };
      // A static index is often one byte where a dynamic one is two.
      if (named === 0 || named > STATIC_TABLE_LENGTH) named = index;
    }
    return { index: named, whole: false };
  }

  #integer(pattern: number, mask: number, value: number): void {
    this.#reserve(6);
    if (value < mask) {
      this.#out[this.#at++] = pattern | value;
      return;
    }
    this.#out[this.#at++] = pattern | mask;
    let rest = value - mask;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#out[this.#at++] = 0x80 | (rest & 0x7f);
    this.#out[this.#at++] = rest;
  }

  #string(text: string): void {
    const coded = huffmanLength(text);
    if (coded <= text.length) {
      this.#integer(0x80, 0x7f, coded);
      this.#reserve(coded);
      this.#at = huffmanEncode(text, this.#out, this.#at);
    } else {
      this.#integer(0, 0x7f, text.length);
      this.#reserve(text.length);
      writeLatin1(this.#out, text, this.#at);
      this.#at += text.length;
    }
  }

  #reserve(sizeBytes: number): void {
    if (this.#at + sizeBytes <= this.#out.length) return;
    const larger = alloc(Math.max(this.#out.length * 2, this.#at + sizeBytes));
    larger.set(this.#out.subarray(0, this.#at));
    this.#out = larger;
  }
}

/** Fields of one block. */
export interface FieldList {
  readonly fields: readonly EncodableField[];
  /** Whether the same object is sent repeatedly, so that its block is worth caching. */
  readonly constant: boolean;
}

export function constantFields(...fields: EncodableField[]): FieldList {
  return { fields, constant: true };
}

/**
 * The dynamic table (RFC 7541 sections 2.3.2 and 4): a queue of fields, newest first, bounded by
 * their size.
 */
class DynamicTable {
  /** A ring; its length is a power of two and at least `length`. */
  #ring: (HeaderField | undefined)[] = [];
  /** Where the next field goes. */
  #next = 0;
  #length = 0;
  #sizeBytes = 0;
  #maxSizeBytes: number;
  /** Number of changes: while it stays the same, each index means the same field. */
  version = 0;

  /** @param maxSizeBytes the maximum sum of the sizes of all fields */
  constructor(maxSizeBytes: number) {
    this.#maxSizeBytes = maxSizeBytes;
  }

  get length(): number {
    return this.#length;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get maxSizeBytes(): number {
    return this.#maxSizeBytes;
  }

  /** The field at an index that counts from the newest, 0; undefined past the oldest. */
  at(index: number): HeaderField | undefined {
    return index < this.#length
      ? this.#ring[(this.#next - 1 - index) & (this.#ring.length - 1)]
      : undefined;
  }

  /**
   * Adds a field, after dropping as many old ones as needed. A field larger than the table empties
   * it.
   */
  insert(field: HeaderField): void {
    this.version++;
    this.#evictTo(this.#maxSizeBytes - field.sizeBytes);
    if (field.sizeBytes > this.#maxSizeBytes) return;
    if (this.#length === this.#ring.length) this.#grow();
    this.#ring[this.#next] = field;
    this.#next = (this.#next + 1) & (this.#ring.length - 1);
    this.#length++;
    this.#sizeBytes += field.sizeBytes;
  }

  resize(maxSizeBytes: number): void {
    this.version++;
    this.#maxSizeBytes = maxSizeBytes;
    this.#evictTo(maxSizeBytes);
  }

  #evictTo(sizeBytes: number): void {
    while (this.#length > 0 && this.#sizeBytes > sizeBytes) {
      const oldest = (this.#next - this.#length) & (this.#ring.length - 1);
      this.#sizeBytes -= this.#ring[oldest]!.sizeBytes;
      this.#ring[oldest] = undefined;
      this.#length--;
    }
  }

  #grow(): void {
    const fields = Array.from({ length: this.#length }, (_, i) => this.at(this.#length - 1 - i));
    this.#ring = [...fields, ...new Array<undefined>(Math.max(8, this.#length)).fill(undefined)];
    this.#next = this.#length;
  }
}
