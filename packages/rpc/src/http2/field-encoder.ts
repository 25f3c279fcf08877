/**
 * Encodes the header blocks of responses. Nearly all of them are one of a few constant lists: such
 * a list is encoded once, and again only when the table its bytes refer to has changed. With the
 * two fields of every gRPC response in the client's table, headers are two bytes and trailers one.
 */
import { type EncodableField, HpackEncoder } from "../hpack/encoder.ts";

/** Fields of one block. */
export interface FieldList {
  readonly fields: readonly EncodableField[];
  /** Whether the same object is sent repeatedly, so that its block is worth caching. */
  readonly constant: boolean;
}

export function constantFields(...fields: EncodableField[]): FieldList {
  return { fields, constant: true };
}

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
