/**
 * The heads of a connection's latest requests by their header blocks. A client that makes one kind
 * of call again and again sends the same few bytes each time, once its fields are in the dynamic
 * table. A block that does not change the table means the same as long as the table does.
 */
import type { RequestHead } from "./request-head.ts";

/** Kinds of calls that are remembered. */
const ENTRIES = 4;
/** Blocks of more bytes than this are not remembered. */
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

  /** The head that bytes[start, end) makes with the table as it is, if it is known. */
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

  /** Remembers the head of a block that left the table alone. */
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
