/**
 * Caches the heads of a connection's latest requests by their header blocks. A client that repeats
 * one kind of call sends the same few bytes each time, once its fields are in the dynamic table.
 * The block decodes to the same head as long as the table does not change.
 */
import type { RequestHead } from "./request-head.ts";

/** Number of cached heads. */
const ENTRIES = 4;
/** Larger blocks are not cached. */
const MAX_BLOCK_BYTES = 96;

interface Entry {
  readonly block: Uint8Array;
  readonly length: number;
  readonly tableVersion: number;
  readonly head: RequestHead;
}

export class HeadCache {
  readonly #entries: Entry[] = [];
  #next = 0;

  /** The head of the block bytes[start, end) with the current table, if it is cached. */
  find(
    bytes: Uint8Array,
    start: number,
    end: number,
    tableVersion: number,
  ): RequestHead | undefined {
    const length = end - start;
    for (let i = 0; i < this.#entries.length; i++) {
      const entry = this.#entries[i];
      if (entry.length !== length || entry.tableVersion !== tableVersion) continue;
      const block = entry.block;
      let at = 0;
      while (at < length && block[at] === bytes[start + at]) at++;
      if (at === length) return entry.head;
    }
    return undefined;
  }

  /** Caches the head of a block that did not change the table. */
  add(
    bytes: Uint8Array,
    start: number,
    end: number,
    tableVersion: number,
    head: RequestHead,
  ): void {
    const length = end - start;
    if (length > MAX_BLOCK_BYTES) return;
    this.#entries[this.#next] = {
      block: new Uint8Array(bytes.subarray(start, end)),
      length,
      tableVersion,
      head,
    };
    this.#next = (this.#next + 1) % ENTRIES;
  }
}
