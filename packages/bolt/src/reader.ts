/**
 * Reads a bbolt database file, each bucket in key order. Everything is validated: any deviation
 * from format.ts is damage, reported with its offset.
 *
 *     const file = BoltFile.open(disk, path);
 *     for (const slice of file.records("key")) …     // one leaf page at a time
 *     file.close();
 *
 * Each page may occur only once, so that a walk ends. A walk holds one page per level.
 */
import type { Disk, DiskFile } from "@quorate/host";
import { compare, defined, toHex, toUtf8 } from "@quorate/proto";
import { BoltDamageError } from "./errors.ts";
import {
  BUCKET_BYTES,
  BUCKET_FLAG,
  decodeMeta,
  ELEMENT_BYTES,
  Flag,
  HEADER_BYTES,
  META_BYTES,
  type Meta,
  viewOf,
} from "./format.ts";
import type { BoltRecord } from "./writer.ts";

/** The page sizes at which the second meta page is searched if the first one is broken. */
const PAGE_SIZES = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/** The height of a tree of 2^63 pages with two children each. */
const MAX_DEPTH = 64;

/** A page with its overflow pages, and its offset in the file. */
interface Page {
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly flags: number;
  readonly count: number;
}

interface Bucket {
  /** 0: the bucket is inline, in the value itself. */
  readonly root: number;
  readonly inline: Page | undefined;
}

interface Element {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly flags: number;
}

/** The bounds of a page's keys: at or above `low`, below `high`. */
interface Bounds {
  readonly low: Uint8Array | undefined;
  readonly high: Uint8Array | undefined;
}

const OPEN: Bounds = { low: undefined, high: undefined };

/**
 * Whether a branch page has all of its entries in these bytes: the pages behind it are not read
 * then, which for a root that was made with reserved pages may be many.
 */
function isComplete(bytes: Uint8Array, count: number): boolean {
  if (HEADER_BYTES + count * ELEMENT_BYTES > bytes.length) return false;
  const view = viewOf(bytes);
  for (let i = 0; i < count; i++) {
    const element = HEADER_BYTES + i * ELEMENT_BYTES;
    const end = element + view.getUint32(element, true) + view.getUint32(element + 4, true);
    if (end > bytes.length) return false;
  }
  return true;
}

/** An open database file. */
export class BoltFile {
  readonly path: string;
  readonly #file: DiskFile;
  readonly #meta: Meta;
  /** One bit per page: the pages of the root bucket, which no other bucket may use. */
  readonly #listed: Uint8Array;
  readonly #buckets: ReadonlyMap<string, Bucket>;

  private constructor(file: DiskFile, meta: Meta) {
    this.path = file.path;
    this.#file = file;
    this.#meta = meta;
    this.#listed = new Uint8Array(Math.ceil(meta.pages / 8));
    this.#buckets = this.#readBuckets();
  }

  /**
   * Opens a file and reads the names of its buckets. Bytes behind the pages in use are ignored.
   * @throws BoltDamageError, DiskError
   */
  static open(disk: Disk, path: string): BoltFile {
    const file = disk.open(path, "read");
    try {
      return new BoltFile(file, readMeta(file));
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Bytes of the pages in use. */
  get sizeBytes(): number {
    return this.#meta.pages * this.#meta.pageBytes;
  }

  /** In the order of the file. */
  get bucketNames(): string[] {
    return [...this.#buckets.keys()];
  }

  /**
   * The records of a bucket in order, one leaf page at a time; none for a missing bucket. @throws
   * BoltDamageError
   */
  *records(name: string): Generator<BoltRecord[]> {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) return;
    for (const { page, elements } of this.#leaves(bucket, this.#listed.slice())) {
      yield elements.map(({ key, value, flags }): BoltRecord => {
        if (flags !== 0)
          this.#damaged(
            page.offset,
            `the bucket ${name} contains another bucket, which etcd never writes`,
          );
        return [key, value];
      });
    }
  }

  /** The last key of a bucket, undefined if it has none. @throws BoltDamageError */
  lastKey(name: string): Uint8Array | undefined {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) return undefined;
    const met = this.#listed.slice();
    let page = bucket.inline ?? this.#readPage(bucket.root, met);
    while (page.flags === Flag.branch)
      page = this.#readPage(
        defined(this.#branchEntries(page, OPEN).at(-1), "the last branch").page,
        met,
      );
    if (page.flags !== Flag.leaf)
      this.#damaged(page.offset, `a page has flags ${page.flags}: neither branch nor leaf`);
    return this.#leafElements(page, OPEN).at(-1)?.key;
  }

  close(): void {
    this.#file.close();
  }

  #damaged(offset: number, reason: string): never {
    throw new BoltDamageError(this.path, offset, reason);
  }

  #readBuckets(): Map<string, Bucket> {
    const buckets = new Map<string, Bucket>();
    for (const { page, elements } of this.#leaves(
      { root: this.#meta.root, inline: undefined },
      this.#listed,
    )) {
      for (const { key, value, flags } of elements) {
        if ((flags & BUCKET_FLAG) === 0)
          this.#damaged(page.offset, `the root has a record ${toHex(key)} that is no bucket`);
        if (value.length < BUCKET_BYTES)
          this.#damaged(
            page.offset,
            `the bucket ${toUtf8(key)} has a header of ${value.length} bytes`,
          );
        const root = viewOf(value).getBigUint64(0, true);
        const inline = root === 0n ? this.#inlinePage(value, page.offset, toUtf8(key)) : undefined;
        buckets.set(toUtf8(key), { root: this.#pageNumber(root, page.offset), inline });
      }
    }
    return buckets;
  }

  #inlinePage(value: Uint8Array, offset: number, name: string): Page {
    const bytes = value.subarray(BUCKET_BYTES);
    if (bytes.length < HEADER_BYTES) this.#damaged(offset, `the bucket ${name} is truncated`);
    const view = viewOf(bytes);
    return { bytes, offset, flags: view.getUint16(8, true), count: view.getUint16(10, true) };
  }

  #pageNumber(value: bigint, offset: number): number {
    if (value >= BigInt(this.#meta.pages) || value === 1n) {
      this.#damaged(
        offset,
        `it refers to page ${value}, but the pages are 2 to ${this.#meta.pages - 1}`,
      );
    }
    return Number(value);
  }

  /**
   * The leaves of a tree in order, with validated elements.
   * @param met one bit per page: pages that have occurred
   */
  *#leaves(bucket: Bucket, met: Uint8Array): Generator<{ page: Page; elements: Element[] }> {
    if (bucket.inline !== undefined) {
      if (bucket.inline.flags !== Flag.leaf)
        this.#damaged(bucket.inline.offset, `an inline bucket has flags ${bucket.inline.flags}`);
      yield { page: bucket.inline, elements: this.#leafElements(bucket.inline, OPEN) };
      return;
    }
    yield* this.#walk(bucket.root, OPEN, 0, met);
  }

  *#walk(
    number: number,
    bounds: Bounds,
    depth: number,
    met: Uint8Array,
  ): Generator<{ page: Page; elements: Element[] }> {
    const page = this.#readPage(number, met);
    if (depth > MAX_DEPTH) this.#damaged(page.offset, `the tree is deeper than ${MAX_DEPTH} pages`);
    if (page.flags === Flag.leaf) {
      yield { page, elements: this.#leafElements(page, bounds) };
      return;
    }
    if (page.flags !== Flag.branch)
      this.#damaged(page.offset, `page ${number} has flags ${page.flags}: neither branch nor leaf`);
    const entries = this.#branchEntries(page, bounds);
    for (const [i, entry] of entries.entries()) {
      yield* this.#walk(
        entry.page,
        { low: entry.key, high: entries[i + 1]?.key ?? bounds.high },
        depth + 1,
        met,
      );
    }
  }

  #readPage(number: number, met: Uint8Array): Page {
    const { pageBytes, pages } = this.#meta;
    const offset = number * pageBytes;
    const first = this.#read(offset, pageBytes);
    const view = viewOf(first);
    const id = view.getBigUint64(0, true);
    if (id !== BigInt(number))
      this.#damaged(offset, `page ${number} has page number ${id} in its header`);
    const overflow = view.getUint32(12, true);
    if (number + overflow >= pages)
      this.#damaged(
        offset,
        `page ${number} overflows into ${overflow} pages, and the last page is ${pages - 1}`,
      );
    for (let one = number; one <= number + overflow; one++) {
      if (((met[one >> 3] >> (one & 7)) & 1) === 1)
        this.#damaged(offset, `two elements refer to page ${one}`);
      met[one >> 3] |= 1 << (one & 7);
    }
    const [flags, count] = [view.getUint16(8, true), view.getUint16(10, true)];
    const bytes =
      overflow === 0 || (flags === Flag.branch && isComplete(first, count))
        ? first
        : this.#read(offset, pageBytes * (overflow + 1));
    return { bytes, offset, flags, count };
  }

  #read(offset: number, sizeBytes: number): Uint8Array {
    const bytes = new Uint8Array(sizeBytes);
    let done = 0;
    while (done < sizeBytes) {
      const read = this.#file.read(bytes.subarray(done), offset + done);
      if (read === 0)
        this.#damaged(
          offset,
          `the file ends at byte ${offset + done}; it must have ${this.sizeBytes}`,
        );
      done += read;
    }
    return bytes;
  }

  #checkKey(page: Page, key: Uint8Array, before: Uint8Array | undefined, bounds: Bounds): void {
    if (before !== undefined && compare(before, key) >= 0)
      this.#damaged(page.offset, `the key ${toHex(key)} follows ${toHex(before)}`);
    if (bounds.low !== undefined && compare(key, bounds.low) < 0) {
      this.#damaged(
        page.offset,
        `the key ${toHex(key)} is below ${toHex(bounds.low)}, the bound of its branch`,
      );
    }
    if (bounds.high !== undefined && compare(key, bounds.high) >= 0) {
      this.#damaged(
        page.offset,
        `the key ${toHex(key)} is not below ${toHex(bounds.high)}, the bound of the next page`,
      );
    }
  }

  /** The element headers of a page, which must be inside of it. */
  #elements(page: Page): DataView {
    if (HEADER_BYTES + page.count * ELEMENT_BYTES > page.bytes.length)
      this.#damaged(page.offset, `${page.count} elements do not fit`);
    return viewOf(page.bytes);
  }

  #part(page: Page, at: number, sizeBytes: number): Uint8Array {
    if (at + sizeBytes > page.bytes.length) {
      this.#damaged(
        page.offset,
        `an element's ${sizeBytes} bytes at ${at} exceed the page, which has ${page.bytes.length}`,
      );
    }
    return page.bytes.subarray(at, at + sizeBytes);
  }

  #leafElements(page: Page, bounds: Bounds): Element[] {
    const view = this.#elements(page);
    const elements: Element[] = [];
    for (let i = 0; i < page.count; i++) {
      const start = HEADER_BYTES + i * ELEMENT_BYTES;
      const at = start + view.getUint32(start + 4, true);
      const keyBytes = view.getUint32(start + 8, true);
      const key = this.#part(page, at, keyBytes);
      if (keyBytes === 0) this.#damaged(page.offset, "an element has no key");
      const value = this.#part(page, at + keyBytes, view.getUint32(start + 12, true));
      this.#checkKey(page, key, elements[i - 1]?.key, bounds);
      elements.push({ flags: view.getUint32(start, true), key, value });
    }
    return elements;
  }

  #branchEntries(page: Page, bounds: Bounds): { key: Uint8Array; page: number }[] {
    const view = this.#elements(page);
    if (page.count === 0) this.#damaged(page.offset, "a branch has no elements");
    const entries: { key: Uint8Array; page: number }[] = [];
    for (let i = 0; i < page.count; i++) {
      const start = HEADER_BYTES + i * ELEMENT_BYTES;
      const key = this.#part(
        page,
        start + view.getUint32(start, true),
        view.getUint32(start + 4, true),
      );
      this.#checkKey(page, key, entries[i - 1]?.key, bounds);
      entries.push({
        key,
        page: this.#pageNumber(view.getBigUint64(start + 8, true), page.offset),
      });
    }
    return entries;
  }
}

/**
 * The valid meta page. Throws BoltDamageError if there is none, or if the file is truncated.
 */
export function readMeta(file: DiskFile): Meta {
  const sizeBytes = file.size();
  const metaAt = (offset: number): Meta | string => {
    const bytes = new Uint8Array(META_BYTES);
    if (offset + HEADER_BYTES + META_BYTES > sizeBytes)
      return `the file has only ${sizeBytes} bytes and no meta page`;
    file.read(bytes, offset + HEADER_BYTES);
    return decodeMeta(bytes);
  };
  const first = metaAt(0);
  const found: Meta[] = [];
  if (typeof first !== "string") {
    found.push(first);
    const second = metaAt(first.pageBytes);
    if (typeof second !== "string") found.push(second);
  } else {
    for (const pageBytes of PAGE_SIZES) {
      const second = metaAt(pageBytes);
      if (typeof second !== "string" && second.pageBytes === pageBytes) found.push(second);
    }
  }
  const meta = found.sort((a, b) => b.transaction - a.transaction)[0];
  if (meta === undefined)
    throw new BoltDamageError(file.path, 0, `${first as string}, and neither meta page is valid`);
  const neededBytes = meta.pages * meta.pageBytes;
  if (sizeBytes < neededBytes) {
    throw new BoltDamageError(
      file.path,
      sizeBytes,
      `the file is truncated: it has ${sizeBytes} of ${neededBytes} bytes`,
    );
  }
  return meta;
}
