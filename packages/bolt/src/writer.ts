/**
 * Writes a database file sequentially from sorted records, with one page per tree level in memory.
 *
 *     const output = await boltOutput(buckets);     // first pass: counts pages, finds roots
 *     output.sizeBytes;
 *     for await (const chunk of output.chunks()) …  // second pass: the bytes
 *
 * The file begins with its meta pages, which name the root, but trees are built from the leaves up,
 * so the records are read twice: `scan` must yield the same both times. Pages are filled
 * completely; a record that does not fit beside others has pages of its own.
 *
 *     meta 0 | meta 1 | freelist (empty) | for each bucket: leaves, branches, root | root of all
 */
import { compare, EMPTY, fromUtf8 } from "@quorate/proto";
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
  pagesFor,
  viewOf,
} from "./format.ts";
import { assert } from "./invariants.ts";

/** Key and value of a record. */
export type BoltRecord = readonly [key: Uint8Array, value: Uint8Array];

/**
 * A bucket to write: its name, and its records in ascending order of their keys, in slices. `scan`
 * is called twice.
 */
export interface BoltBucket {
  readonly name: string;
  scan(): AsyncIterable<readonly BoltRecord[]>;
}

/** A file to write. */
export interface BoltOutput {
  readonly sizeBytes: number;
  /** The file's bytes, one chunk per slice of records. Call once. */
  chunks(): AsyncGenerator<Uint8Array>;
}

const FREELIST_PAGE = 2;
const FIRST_PAGE = 3;
/**
 * The transaction id of meta page 0; meta page 1 has the one before, as in a copy made by bbolt.
 */
const TRANSACTION = 2;
/**
 * The fewest entries of a branch page, on which bbolt relies; one more entry is held back until the
 * next page has two.
 */
const MIN_BRANCH_ENTRIES = 2;

interface Leaf {
  readonly flags: number;
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

interface Branch {
  readonly key: Uint8Array;
  readonly page: number;
}

/** Numbers pages, and keeps their bytes until taken unless it only counts. */
class Pages {
  readonly #counting: boolean;
  #next = FIRST_PAGE;
  #made: Uint8Array[] = [];

  constructor(counting: boolean) {
    this.#counting = counting;
  }

  get count(): number {
    return this.#next;
  }

  /** Adds a page. Returns its number. */
  add(flags: number, count: number, sizeBytes: number, fill: (page: Uint8Array) => void): number {
    const id = this.#next;
    this.#next += pagesFor(sizeBytes);
    if (!this.#counting) {
      const page = newPage(id, flags, count, sizeBytes);
      fill(page);
      this.#made.push(page);
    }
    return id;
  }

  take(): Uint8Array[] {
    const made = this.#made;
    this.#made = [];
    return made;
  }
}

/** Builds the tree of one bucket from the leaves up. */
class Tree {
  readonly #pages: Pages;
  #leaf: Leaf[] = [];
  #leafBytes = HEADER_BYTES;
  #last: Uint8Array | undefined;
  readonly #levels: { entries: Branch[]; sizeBytes: number }[] = [];

  constructor(pages: Pages) {
    this.#pages = pages;
  }

  put(key: Uint8Array, value: Uint8Array, flags = 0): void {
    assert(key.length > 0 && key.length <= MAX_KEY_BYTES, "BOLT-1", `not ${key.length}`);
    assert(value.length <= MAX_VALUE_BYTES, "BOLT-2", `not ${value.length}`);
    assert(this.#last === undefined || compare(this.#last, key) < 0, "BOLT-3");
    const sizeBytes = ELEMENT_BYTES + key.length + value.length;
    if (this.#leaf.length > 0 && this.#leafBytes + sizeBytes > PAGE_BYTES) this.#endLeaf();
    this.#leaf.push({ flags, key, value });
    this.#leafBytes += sizeBytes;
    this.#last = key;
  }

  /** Ends the tree. Returns its root page. */
  end(): number {
    if (this.#leaf.length > 0 || this.#levels.length === 0) this.#endLeaf();
    for (let height = 0; ; height++) {
      const level = this.#levels[height];
      if (level.entries.length === 1 && this.#levels.length === height + 1)
        return level.entries[0].page;
      this.#endBranch(height);
    }
  }

  #endLeaf(): void {
    const leaf = this.#leaf;
    const id = this.#pages.add(Flag.leaf, leaf.length, this.#leafBytes, (page) => {
      const view = viewOf(page);
      let at = HEADER_BYTES + leaf.length * ELEMENT_BYTES;
      leaf.forEach(({ flags, key, value }, i) => {
        const element = HEADER_BYTES + i * ELEMENT_BYTES;
        view.setUint32(element, flags, true);
        view.setUint32(element + 4, at - element, true);
        view.setUint32(element + 8, key.length, true);
        view.setUint32(element + 12, value.length, true);
        page.set(key, at);
        page.set(value, at + key.length);
        at += key.length + value.length;
      });
    });
    this.#leaf = [];
    this.#leafBytes = HEADER_BYTES;
    // Copied: the key may be part of a large slice.
    this.#addBranch(0, leaf[0]?.key.slice() ?? EMPTY, id);
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

  #endBranch(height: number): void {
    const level = this.#levels[height];
    const { entries } = level;
    assert(entries.length >= MIN_BRANCH_ENTRIES, "BOLT-4");
    const id = this.#pages.add(Flag.branch, entries.length, level.sizeBytes, (page) => {
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
    });
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
    const tree = new Tree(pages);
    for await (const slice of bucket.scan()) {
      for (const [key, value] of slice) tree.put(key, value);
      yield;
    }
    all.put(fromUtf8(bucket.name), bucketValue(tree.end()), BUCKET_FLAG);
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
        const made = pages.take();
        if (made.length > 0) yield joined(made);
      }
    },
  };
}
