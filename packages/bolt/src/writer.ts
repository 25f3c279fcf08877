/**
 * Writes a database file sequentially from sorted records, with one page per tree level in memory.
 *
 *     const output = await boltOutput(buckets);     // first pass: counts pages
 *     output.sizeBytes;
 *     for await (const chunk of output.chunks()) …  // second pass: the bytes
 *
 * The file begins with its meta pages, which name the root, but trees are built from the leaves up,
 * so the records are read twice: `scan` must yield the same both times. A bucket whose records are
 * counted already is read once: pages are reserved for it (reserve.ts). Pages are filled
 * completely; a record that does not fit beside others has pages of its own.
 *
 *     meta 0 | meta 1 | freelist (empty) | for each bucket: leaves, branches, root | root of all
 */
import { compare, copyBytes, EMPTY, fromUtf8 } from "@quorate/proto";
import {
  BUCKET_BYTES,
  BUCKET_FLAG,
  ELEMENT_BYTES,
  encodeMeta,
  Flag,
  HEADER_BYTES,
  MAX_KEY_BYTES,
  MAX_VALUE_BYTES,
  newPage,
  PAGE_BYTES,
  viewOf,
} from "./format.ts";
import { assert } from "./invariants.ts";
import { Pages } from "./pages.ts";
import { type BucketSizes, LeafBudget, reservedPages } from "./reserve.ts";

/** Key and value of a record. */
export type BoltRecord = readonly [key: Uint8Array, value: Uint8Array];

/**
 * A bucket to write: its name, and its records in ascending order of their keys, in slices. `scan`
 * and `read` are called twice, or once where `sizes` is there.
 */
export interface BoltBucket {
  readonly name: string;
  scan(): AsyncIterable<readonly BoltRecord[]>;
  /** The same records in place, which is faster than `scan`; preferred where it is there. */
  readonly read?: (() => BoltCursor) | undefined;
  /** What the records are, if that is known, with no more of them than this. */
  readonly sizes?: BucketSizes | undefined;
}

/** Records that are read one after the other, without an object for each. */
export interface BoltCursor {
  /** Goes to the next record; false if `refill` has to be called first. */
  next(): boolean;
  /** Reads on; false at the end. */
  refill(): Promise<boolean>;
  /** The present record: its key and its value are parts of these bytes until the next call. */
  readonly key: Uint8Array;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly bytes: Uint8Array;
  readonly valueStart: number;
  readonly valueEnd: number;
}

/** A file to write. */
export interface BoltOutput {
  readonly sizeBytes: number;
  /** The file's bytes, in chunks for each slice of records. Call once. */
  chunks(): AsyncGenerator<Uint8Array>;
}

const FREELIST_PAGE = 2;
/**
 * The transaction id of meta page 0; meta page 1 has the one before, as in a copy made by bbolt.
 */
const TRANSACTION = 2;
/**
 * The fewest entries of a branch page, on which bbolt relies; one more entry is held back until the
 * next page has two.
 */
const MIN_BRANCH_ENTRIES = 2;

interface Branch {
  readonly key: Uint8Array;
  readonly page: number;
}

/** Builds the tree of one bucket from the leaves up. */
class Tree {
  readonly #pages: Pages;
  readonly #budget: LeafBudget | undefined;
  /** Of the present leaf: how many records it has, and its bytes with them. */
  #count = 0;
  #leafBytes = HEADER_BYTES;
  /** Flags, length of the key and length of the value of each of its records. */
  #lengths = new Uint32Array(3 * 16);
  /** Its keys and values. Not filled while pages are only counted. */
  #data: Uint8Array = new Uint8Array(PAGE_BYTES);
  #dataBytes = 0;
  #firstKey: Uint8Array = EMPTY;
  #last: Uint8Array = new Uint8Array(64);
  #lastBytes = -1;
  readonly #levels: { entries: Branch[]; sizeBytes: number }[] = [];

  /** @param budget decides where leaves end; without it they end with their page */
  constructor(pages: Pages, budget?: LeafBudget) {
    this.#pages = pages;
    this.#budget = budget;
  }

  put(key: Uint8Array, value: Uint8Array, flags = 0): void {
    this.putPart(key, 0, key.length, value, 0, value.length, flags);
  }

  /** Adds a record whose key and value are parts of other bytes, which are not kept. */
  putPart(
    key: Uint8Array,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array,
    valueStart: number,
    valueEnd: number,
    flags: number,
  ): void {
    const keyBytes = keyEnd - keyStart;
    const valueBytes = valueEnd - valueStart;
    assert(keyBytes > 0 && keyBytes <= MAX_KEY_BYTES, "BOLT-1", `not ${keyBytes}`);
    assert(valueBytes <= MAX_VALUE_BYTES, "BOLT-2", `not ${valueBytes}`);
    assert(this.#isAbove(key, keyStart, keyEnd), "BOLT-3");
    this.#keep(key, keyStart, keyEnd);
    const sizeBytes = ELEMENT_BYTES + keyBytes + valueBytes;
    if (this.#count > 0 && this.#leafBytes + sizeBytes > PAGE_BYTES) {
      if (this.#budget?.mayEnd(this.#leafBytes) !== false) this.#endLeaf();
    }
    if (this.#count === 0) this.#firstKey = key.slice(keyStart, keyEnd);
    const at = 3 * this.#count++;
    if (at === this.#lengths.length) this.#growLengths();
    this.#lengths[at] = flags;
    this.#lengths[at + 1] = keyBytes;
    this.#lengths[at + 2] = valueBytes;
    this.#leafBytes += sizeBytes;
    if (this.#pages.isCounting) return;
    const end = this.#dataBytes + keyBytes + valueBytes;
    if (end > this.#data.length) this.#growData(end);
    const data = this.#data;
    let to = this.#dataBytes;
    for (let i = keyStart; i < keyEnd; i++) data[to++] = key[i];
    copyBytes(value, valueStart, valueEnd, data, to);
    this.#dataBytes = end;
  }

  /**
   * Ends the tree, whose root takes the pages up to `end` (excluded), or as many as it needs.
   * Returns the root page.
   */
  end(end?: number): number {
    const isLeaf = this.#levels.length === 0;
    if (this.#count > 0 || isLeaf) this.#endLeaf(isLeaf ? end : undefined);
    for (let height = 0; ; height++) {
      const level = this.#levels[height];
      if (level.entries.length === 1 && this.#levels.length === height + 1)
        return level.entries[0].page;
      this.#endBranch(height, this.#levels.length === height + 1 ? end : undefined);
    }
  }

  /** Whether a key follows the last one. From its beginning; the lengths decide at last. */
  #isAbove(key: Uint8Array, start: number, end: number): boolean {
    const last = this.#last;
    const length = Math.min(this.#lastBytes, end - start);
    for (let i = 0; i < length; i++)
      if (last[i] !== key[start + i]) return last[i] < key[start + i];
    return this.#lastBytes < end - start;
  }

  #keep(key: Uint8Array, start: number, end: number): void {
    if (end - start > this.#last.length) this.#last = new Uint8Array(2 * (end - start));
    const last = this.#last;
    for (let i = start; i < end; i++) last[i - start] = key[i];
    this.#lastBytes = end - start;
  }

  #growLengths(): void {
    const lengths = new Uint32Array(2 * this.#lengths.length);
    lengths.set(this.#lengths);
    this.#lengths = lengths;
  }

  #growData(neededBytes: number): void {
    const data = new Uint8Array(Math.max(neededBytes, 2 * this.#data.length));
    data.set(this.#data.subarray(0, this.#dataBytes));
    this.#data = data;
  }

  #endLeaf(end?: number): void {
    const count = this.#count;
    const lengths = this.#lengths;
    const sizeBytes = this.#leafBytes;
    this.#budget?.ended(sizeBytes);
    const fill = (page: Uint8Array): void => {
      const view = viewOf(page);
      let at = HEADER_BYTES + count * ELEMENT_BYTES;
      copyBytes(this.#data, 0, this.#dataBytes, page, at);
      for (let i = 0; i < count; i++) {
        const element = HEADER_BYTES + i * ELEMENT_BYTES;
        view.setUint32(element, lengths[3 * i], true);
        view.setUint32(element + 4, at - element, true);
        view.setUint32(element + 8, lengths[3 * i + 1], true);
        view.setUint32(element + 12, lengths[3 * i + 2], true);
        at += lengths[3 * i + 1] + lengths[3 * i + 2];
      }
    };
    const id = this.#pages.add({ flags: Flag.leaf, count, sizeBytes, fill }, end);
    const first = count === 0 ? EMPTY : this.#firstKey;
    this.#count = 0;
    this.#dataBytes = 0;
    this.#leafBytes = HEADER_BYTES;
    this.#addBranch(0, first, id);
  }

  #addBranch(height: number, key: Uint8Array, page: number): void {
    this.#levels[height] ??= { entries: [], sizeBytes: HEADER_BYTES };
    const level = this.#levels[height];
    const sizeBytes = ELEMENT_BYTES + key.length;
    if (level.entries.length > MIN_BRANCH_ENTRIES && level.sizeBytes + sizeBytes > PAGE_BYTES) {
      const kept = level.entries.pop()!;
      level.sizeBytes -= ELEMENT_BYTES + kept.key.length;
      this.#endBranch(height);
      level.entries.push(kept);
      level.sizeBytes += ELEMENT_BYTES + kept.key.length;
    }
    level.entries.push({ key, page });
    level.sizeBytes += sizeBytes;
  }

  #endBranch(height: number, end?: number): void {
    const level = this.#levels[height];
    const { entries } = level;
    assert(entries.length >= MIN_BRANCH_ENTRIES, "BOLT-4");
    const fill = (page: Uint8Array): void => {
      const view = viewOf(page);
      let at = HEADER_BYTES + entries.length * ELEMENT_BYTES;
      entries.forEach((entry, i) => {
        const element = HEADER_BYTES + i * ELEMENT_BYTES;
        view.setUint32(element, at - element, true);
        view.setUint32(element + 4, entry.key.length, true);
        view.setBigUint64(element + 8, BigInt(entry.page), true);
        page.set(entry.key, at);
        at += entry.key.length;
      });
    };
    const content = { flags: Flag.branch, count: entries.length, sizeBytes: level.sizeBytes, fill };
    const id = this.#pages.add(content, end);
    level.entries = [];
    level.sizeBytes = HEADER_BYTES;
    this.#addBranch(height + 1, entries[0].key, id);
  }
}

function bucketValue(root: number): Uint8Array {
  const value = new Uint8Array(BUCKET_BYTES);
  viewOf(value).setBigUint64(0, BigInt(root), true);
  return value;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Adds all records, with a pause after each slice. Returns the root page. */
async function* build(buckets: readonly BoltBucket[], pages: Pages): AsyncGenerator<void, number> {
  const all = new Tree(pages);
  for (const bucket of buckets) {
    const { sizes } = bucket;
    const reserved = sizes && reservedPages(sizes);
    if (reserved !== undefined && pages.isCounting) {
      pages.reserve(reserved);
      all.put(fromUtf8(bucket.name), bucketValue(0), BUCKET_FLAG);
      continue;
    }
    const end = reserved && pages.count + reserved;
    const tree = new Tree(pages, sizes && new LeafBudget());
    const cursor = bucket.read?.();
    if (cursor !== undefined) {
      do {
        while (cursor.next())
          tree.putPart(
            cursor.key,
            cursor.keyStart,
            cursor.keyEnd,
            cursor.bytes,
            cursor.valueStart,
            cursor.valueEnd,
            0,
          );
        yield;
      } while (await cursor.refill());
    } else {
      for await (const slice of bucket.scan()) {
        for (const [key, value] of slice) tree.put(key, value);
        yield;
      }
    }
    all.put(fromUtf8(bucket.name), bucketValue(tree.end(end)), BUCKET_FLAG);
    yield;
  }
  return all.end();
}

/**
 * Measures the file of these buckets, whose names must differ. Rejects with the error of a scan.
 */
export async function boltOutput(unsorted: readonly BoltBucket[]): Promise<BoltOutput> {
  const buckets = [...unsorted].sort((a, b) => compare(fromUtf8(a.name), fromUtf8(b.name)));
  const counting = new Pages(true);
  let root: number | undefined;
  for (const measuring = build(buckets, counting); root === undefined; ) {
    const step = await measuring.next();
    if (step.done === true) root = step.value;
  }
  const meta = { pageBytes: PAGE_BYTES, root, freelist: FREELIST_PAGE, pages: counting.count };
  return {
    sizeBytes: counting.count * PAGE_BYTES,
    async *chunks() {
      yield joined([
        encodeMeta(0, { ...meta, transaction: TRANSACTION }),
        encodeMeta(1, { ...meta, transaction: TRANSACTION - 1 }),
        newPage(FREELIST_PAGE, Flag.freelist, 0, 0),
      ]);
      const pages = new Pages(false);
      const building = build(buckets, pages);
      for (let done = false; !done; ) {
        const step = await building.next();
        done = step.done === true;
        if (done) assert(step.value === root && pages.count === counting.count, "BOLT-5");
        yield* pages.take();
      }
    },
  };
}
