/**
 * Pages for a bucket whose records are counted, but not read yet: with them a file's size is known
 * before its first byte, without a pass over the records.
 *
 *     reserved   content, a share of it that pages may leave empty, and branch pages
 *     leaves     a page each; a leaf gets more pages while too much was left empty before
 *     rest       what is left over belongs to the root page of the bucket's tree
 */
import { ELEMENT_BYTES, HEADER_BYTES, PAGE_BYTES, pagesFor } from "./format.ts";

/** Records of a bucket. */
export interface BucketSizes {
  readonly records: number;
  /** Of their keys and values. */
  readonly bytes: number;
  /** Of the longest key. */
  readonly keyBytes: number;
}

/** Leaves may leave this part of their content empty, and so many bytes more. */
const EMPTY_SHARE = 1 / 32;
const EMPTY_BYTES: number = 64 << 10;
/** A leaf of this size always ends: what it leaves empty is less than its share. */
const LARGE_LEAF_BYTES: number = 256 << 10;

/** The bytes of its pages that a leaf leaves empty, its header included. */
function emptyBytes(leafBytes: number): number {
  return pagesFor(leafBytes) * PAGE_BYTES - (leafBytes - HEADER_BYTES);
}

/** Pages that always suffice for the tree of a bucket whose leaves keep to a `LeafBudget`. */
export function reservedPages({ records, bytes, keyBytes }: BucketSizes): number {
  const contentBytes = bytes + records * ELEMENT_BYTES;
  // The last leaf ends where the records do.
  const mostEmptyBytes = contentBytes * EMPTY_SHARE + EMPTY_BYTES + PAGE_BYTES + HEADER_BYTES;
  let pages = Math.ceil((contentBytes + mostEmptyBytes) / PAGE_BYTES);
  // One entry may be held back for the next page.
  const held = Math.floor((PAGE_BYTES - HEADER_BYTES) / (ELEMENT_BYTES + keyBytes)) - 1;
  const entries = Math.max(2, held);
  for (let level = pages; level > 1; ) {
    level = Math.floor(level / entries) + 1;
    pages += level;
  }
  return pages;
}

/** Decides where the leaves of a tree end, so that they keep to the share. */
export class LeafBudget {
  #contentBytes = 0;
  #emptyBytes = 0;

  /** Whether a leaf of this size may end before the next record, which does not fit its page. */
  mayEnd(leafBytes: number): boolean {
    if (leafBytes >= LARGE_LEAF_BYTES) return true;
    const contentBytes = this.#contentBytes + leafBytes - HEADER_BYTES;
    return this.#emptyBytes + emptyBytes(leafBytes) <= contentBytes * EMPTY_SHARE + EMPTY_BYTES;
  }

  ended(leafBytes: number): void {
    this.#contentBytes += leafBytes - HEADER_BYTES;
    this.#emptyBytes += emptyBytes(leafBytes);
  }
}
