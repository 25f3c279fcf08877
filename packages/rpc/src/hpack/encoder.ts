/**
 * HPACK's encoder (RFC 7541). The caller decides for each field whether it goes into the dynamic
 * table: a server's responses have few fields, and two or three of them make up nearly all.
 */
import { alloc, writeLatin1 } from "@quorate/proto";
import { DynamicTable } from "./dynamic-table.ts";
import { FIELD_OVERHEAD_BYTES, HeaderField } from "./header-field.ts";
import { huffmanEncode, huffmanLength } from "./huffman.ts";
import { STATIC_TABLE, STATIC_TABLE_LENGTH } from "./static-table.ts";

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
 * Encodes the header blocks of responses. Nearly all of them are one of a few constant lists: such
 * a list is encoded once, and again only when the table its bytes refer to has changed. With the
 * two fields of every gRPC response in the client's table, headers are two bytes and trailers one.
 */
export class FieldEncoder {
  readonly #encoder = new HpackEncoder();
  readonly #blocks = new Map<FieldList, Uint8Array>();
  #version = this.#encoder.tableVersion;

  /** Applies the client's SETTINGS_HEADER_TABLE_SIZE. */
  limitTable(maxTableBytes: number): void {
    this.#encoder.limitTable(maxTableBytes);
    this.#forgetStale();
  }

  /** The block of a list. Blocks must be sent in the order in which they were encoded. */
  encode(list: FieldList): Uint8Array {
    const known = this.#blocks.get(list);
    if (known !== undefined) return known;
    const block = this.#encoder.encode(list.fields);
    // A block that changed the table would have another meaning the next time.
    if (!this.#forgetStale() && list.constant) this.#blocks.set(list, block);
    return block;
  }

  #forgetStale(): boolean {
    if (this.#version === this.#encoder.tableVersion) return false;
    this.#version = this.#encoder.tableVersion;
    this.#blocks.clear();
    return true;
  }
}
