/**
 * The content of an in-memory file, with crash semantics. Bytes are in pages; an absent page reads
 * as zeros. Unsynced writes are tracked per sector of 512 bytes, the unit that a disk writes
 * atomically. In a crash each unsynced sector independently keeps its new bytes or reverts to those
 * of the last sync.
 */
import type { Random } from "../../src/random.ts";

export const SECTOR_BYTES = 512;
const PAGE_BYTES = 4096;

interface Page {
  readonly data: Uint8Array;
  /** Of dirty sectors the durable bytes; undefined when there are none. */
  durable: Uint8Array | undefined;
  /** A bit per sector that may differ from the durable bytes. */
  dirty: number;
  /**
   * Sectors whose sync failed: the kernel has dropped them, and no later sync persists them unless
   * they are written again.
   */
  lost: number;
  /**
   * During a sync: the sectors that it covers, the bytes of these that it makes durable, and the
   * sectors written since it began.
   */
  syncing: { readonly image: Uint8Array; readonly covers: number; since: number } | undefined;
}

/**
 * Unused copies of pages, for reuse: making new ones is most of a sync's cost.
 */
const spare: Uint8Array[] = [];
const MAX_SPARE_PAGES = 64;

function takeSpare(): Uint8Array {
  return spare.pop() ?? new Uint8Array(PAGE_BYTES);
}

/** Copies the sectors that `bits` has. */
function copySectors(to: Uint8Array, from: Uint8Array, bits: number): void {
  for (let left = bits; left !== 0; left &= left - 1) {
    const at = (31 - Math.clz32(left & -left)) * SECTOR_BYTES;
    to.set(from.subarray(at, at + SECTOR_BYTES), at);
  }
}

function giveBack(copy: Uint8Array): void {
  if (spare.length < MAX_SPARE_PAGES) spare.push(copy);
}

function sectorBit(offset: number): number {
  return 1 << Math.floor(offset / SECTOR_BYTES);
}

export class MemoryFileContent {
  sizeBytes = 0;
  #durableSizeBytes = 0;
  /** The size at the start of the pending sync. */
  #syncingSizeBytes: number | undefined;
  readonly #pages = new Map<number, Page>();
  readonly #dirtyPages = new Set<Page>();

  read(target: Uint8Array, position: number): number {
    const count = Math.max(0, Math.min(target.length, this.sizeBytes - position));
    target.fill(0, 0, count);
    for (let done = 0; done < count; ) {
      const offset = (position + done) % PAGE_BYTES;
      const length = Math.min(PAGE_BYTES - offset, count - done);
      const page = this.#pages.get(Math.floor((position + done) / PAGE_BYTES));
      if (page) target.set(page.data.subarray(offset, offset + length), done);
      done += length;
    }
    return count;
  }

  write(bytes: Uint8Array, position: number): void {
    for (let done = 0; done < bytes.length; ) {
      const offset = (position + done) % PAGE_BYTES;
      const length = Math.min(PAGE_BYTES - offset, bytes.length - done);
      const page = this.#touch(Math.floor((position + done) / PAGE_BYTES), offset, length);
      page.data.set(bytes.subarray(done, done + length), offset);
      done += length;
    }
    if (bytes.length > 0) this.sizeBytes = Math.max(this.sizeBytes, position + bytes.length);
  }

  /** Zeros need no page where there is none. */
  writeZeros(position: number, lengthBytes: number): void {
    this.#clear(position, position + lengthBytes);
    if (lengthBytes > 0) this.sizeBytes = Math.max(this.sizeBytes, position + lengthBytes);
  }

  resize(sizeBytes: number): void {
    if (sizeBytes < this.sizeBytes) this.#clear(sizeBytes, this.sizeBytes);
    this.sizeBytes = sizeBytes;
  }

  /** Starts a sync of all earlier writes; `completeSync` or `failSync` ends it. */
  beginSync(): void {
    this.#syncingSizeBytes = this.sizeBytes;
    for (const page of this.#dirtyPages) {
      const covers = page.dirty & ~page.lost;
      page.syncing = { image: takeSpare(), covers, since: 0 };
      copySectors(page.syncing.image, page.data, covers);
    }
  }

  /** A sync of all earlier writes that ends at once, and takes the place of a pending one. */
  syncNow(): void {
    this.#durableSizeBytes = this.sizeBytes;
    this.#syncingSizeBytes = undefined;
    for (const page of this.#dirtyPages) {
      page.syncing = undefined;
      page.dirty &= page.lost;
      this.#releaseIfClean(page);
    }
  }

  completeSync(): void {
    if (this.#syncingSizeBytes === undefined) return;
    this.#durableSizeBytes = this.#syncingSizeBytes;
    this.#syncingSizeBytes = undefined;
    for (const page of this.#dirtyPages) {
      const { syncing, durable } = page;
      if (!syncing || !durable) continue;
      page.syncing = undefined;
      copySectors(durable, syncing.image, syncing.covers);
      giveBack(syncing.image);
      page.dirty = (page.dirty & ~syncing.covers) | syncing.since;
      this.#releaseIfClean(page);
    }
  }

  #releaseIfClean(page: Page): void {
    if (page.dirty !== 0) return;
    if (page.durable !== undefined) giveBack(page.durable);
    page.durable = undefined;
    this.#dirtyPages.delete(page);
  }

  /** Where the first sector begins that is not durable; undefined if all are. */
  get firstUnsynced(): number | undefined {
    let first: number | undefined;
    for (const [index, page] of this.#pages) {
      if (page.dirty === 0) continue;
      const sector = 31 - Math.clz32(page.dirty & -page.dirty);
      const at = index * PAGE_BYTES + sector * SECTOR_BYTES;
      if (first === undefined || at < first) first = at;
    }
    return first;
  }

  /** The sync made nothing durable; a later one does. */
  dropSync(): void {
    this.#syncingSizeBytes = undefined;
    for (const page of this.#dirtyPages) page.syncing = undefined;
  }

  /**
   * The sync failed: what it covered cannot become durable without being written again.
   */
  failSync(): void {
    this.#syncingSizeBytes = undefined;
    for (const page of this.#dirtyPages) {
      if (!page.syncing) continue;
      page.lost |= page.syncing.covers & ~page.syncing.since;
      page.syncing = undefined;
    }
  }

  /**
   * Applies a crash: every unsynced sector, and the size, keeps its old or its new value at random.
   */
  crash(random: Random): void {
    this.#syncingSizeBytes = undefined;
    for (const page of this.#dirtyPages) {
      for (let at = 0; at < PAGE_BYTES; at += SECTOR_BYTES) {
        const bit = sectorBit(at);
        if (page.durable && page.dirty & bit && (page.lost & bit || random.below(2) === 0)) {
          page.data.set(page.durable.subarray(at, at + SECTOR_BYTES), at);
        }
      }
      page.durable = undefined;
      page.syncing = undefined;
      page.dirty = 0;
      page.lost = 0;
    }
    this.#dirtyPages.clear();
    const low = Math.min(this.sizeBytes, this.#durableSizeBytes);
    const high = Math.max(this.sizeBytes, this.#durableSizeBytes);
    const choice = random.below(3);
    const size =
      choice === 0
        ? this.#durableSizeBytes
        : choice === 1
          ? this.sizeBytes
          : low + Math.floor(random.unit() * (high - low + 1));
    this.sizeBytes = high;
    this.resize(size);
    this.makeDurable();
  }

  /** Marks the content as synced. */
  makeDurable(): void {
    for (const page of this.#dirtyPages) {
      page.durable = undefined;
      page.syncing = undefined;
      page.dirty = 0;
      page.lost = 0;
    }
    this.#dirtyPages.clear();
    this.#durableSizeBytes = this.sizeBytes;
    this.#syncingSizeBytes = undefined;
  }

  /** Changes a byte in the present and the durable content. */
  corrupt(position: number, mask: number): void {
    const index = Math.floor(position / PAGE_BYTES);
    const offset = position % PAGE_BYTES;
    const page = this.#pages.get(index) ?? this.#newPage(index);
    for (const bytes of [page.data, page.durable])
      if (bytes !== undefined) bytes[offset] = (bytes[offset] ?? 0) ^ mask;
  }

  /** Zeros the bytes from `from` to `to` in the pages that exist. */
  #clear(from: number, to: number): void {
    if (to <= from) return;
    const first = Math.floor(from / PAGE_BYTES);
    const last = Math.floor((to - 1) / PAGE_BYTES);
    const indexes =
      last - first < this.#pages.size
        ? range(first, last)
        : [...this.#pages.keys()].filter((i) => i >= first && i <= last);
    for (const index of indexes) {
      if (!this.#pages.has(index)) continue;
      const start = Math.max(from, index * PAGE_BYTES);
      const length = Math.min(to, (index + 1) * PAGE_BYTES) - start;
      const offset = start - index * PAGE_BYTES;
      this.#touch(index, offset, length).data.fill(0, offset, offset + length);
    }
  }

  #newPage(index: number): Page {
    const page: Page = {
      data: new Uint8Array(PAGE_BYTES),
      durable: undefined,
      dirty: 0,
      lost: 0,
      syncing: undefined,
    };
    this.#pages.set(index, page);
    return page;
  }

  /** The page, prepared for changes in the given range. */
  #touch(index: number, offset: number, length: number): Page {
    const page = this.#pages.get(index) ?? this.#newPage(index);
    page.durable ??= takeSpare();
    this.#dirtyPages.add(page);
    for (let at = offset - (offset % SECTOR_BYTES); at < offset + length; at += SECTOR_BYTES) {
      const bit = sectorBit(at);
      if ((page.dirty & bit) === 0) copySectors(page.durable, page.data, bit);
      page.dirty |= bit;
      page.lost &= ~bit;
      if (page.syncing) page.syncing.since |= bit;
    }
    return page;
  }
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
