/** The pages of a file that is written from its beginning to its end. */
import { EMPTY } from "@quorate/proto";
import { PAGE_BYTES, pagesFor, writePageHeader } from "./format.ts";
import { assert } from "./invariants.ts";

/** Behind the two meta pages and the freelist. */
const FIRST_PAGE = 3;
/** Pages are made in pieces of this size, so that no piece has to be joined from them. */
const SLAB_BYTES: number = 256 << 10;
const ZEROS = new Uint8Array(SLAB_BYTES);

/** What a page has: `fill` writes all but its header. */
export interface PageContent {
  readonly flags: number;
  readonly count: number;
  readonly sizeBytes: number;
  fill(page: Uint8Array): void;
}

/** Numbers pages, and keeps their bytes until taken unless it only counts. */
export class Pages {
  /** No bytes are made. */
  readonly isCounting: boolean;
  #next = FIRST_PAGE;
  #made: Uint8Array[] = [];
  /** Zeros for the next pages, and of them: what is used, and what of that was not taken yet. */
  #slab: Uint8Array = EMPTY;
  #used = 0;
  #start = 0;

  constructor(counting: boolean) {
    this.isCounting = counting;
  }

  get count(): number {
    return this.#next;
  }

  /** Numbers pages that are made later. */
  reserve(pages: number): void {
    this.#next += pages;
  }

  /**
   * Adds a page, which takes the pages up to `end` (excluded), or as many as its content needs.
   * Returns its number.
   */
  add(content: PageContent, end?: number): number {
    const id = this.#next;
    const own = pagesFor(content.sizeBytes);
    this.#next = end ?? id + own;
    assert(this.#next >= id + own, "BOLT-6", `${this.#next - id} of ${own} are left`);
    if (!this.isCounting) {
      const page = this.#zeros(own * PAGE_BYTES);
      writePageHeader(page, { id, ...content, overflow: this.#next - id - 1 });
      content.fill(page);
      if (end !== undefined) this.#addZeros((end - id - own) * PAGE_BYTES);
    }
    return id;
  }

  #addZeros(sizeBytes: number): void {
    this.#endPiece();
    for (let left = sizeBytes; left > 0; left -= SLAB_BYTES)
      this.#made.push(ZEROS.subarray(0, Math.min(left, SLAB_BYTES)));
  }

  #zeros(sizeBytes: number): Uint8Array {
    if (this.#used + sizeBytes > this.#slab.length) {
      this.#endPiece();
      this.#slab = new Uint8Array(Math.max(sizeBytes, SLAB_BYTES));
      this.#used = 0;
      this.#start = 0;
    }
    this.#used += sizeBytes;
    return this.#slab.subarray(this.#used - sizeBytes, this.#used);
  }

  #endPiece(): void {
    if (this.#used > this.#start) this.#made.push(this.#slab.subarray(this.#start, this.#used));
    this.#start = this.#used;
  }

  /** The bytes of the pages since the last call, in order. */
  take(): Uint8Array[] {
    this.#endPiece();
    const made = this.#made;
    this.#made = [];
    return made;
  }
}
