/**
 * Header blocks of our answers. Nearly all of them are one of a few constant lists: such a list is
 * encoded once, and again only when the table behind its bytes has changed. With the two fields of
 * every gRPC answer in the client's table, headers are two bytes and trailers one.
 */
import { type EncodableField, HpackEncoder } from "../hpack/encoder.ts";

/** Fields of one block. */
export interface FieldList {
  readonly fields: readonly EncodableField[];
  /**
   * Whether the very same object is sent again and again, so that its block is worth remembering.
   */
  readonly constant: boolean;
}

export function constantFields(...fields: EncodableField[]): FieldList {
  return { fields, constant: true };
}

export class FieldEncoder {
  readonly #encoder = new HpackEncoder();
  readonly #blocks = new Map<FieldList, Uint8Array>();
  #version = this.#encoder.tableVersion;

  /** Takes the client's SETTINGS_HEADER_TABLE_SIZE. */
  limitTable(maxTableBytes: number): void {
    this.#encoder.limitTable(maxTableBytes);
    this.#forgetStale();
  }

  /** The block of a list, to be sent before any that is asked for later. */
  encode(list: FieldList): Uint8Array {
    const known = this.#blocks.get(list);
    if (known !== undefined) return known;
    const block = this.#encoder.encode(list.fields);
    // A block that changed the table means something else the next time.
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
