/**
 * Reads the records of LevelDB's tables from their files, in order and without an object for each:
 * a record that goes through the binding costs some 3 microseconds and as much garbage.
 *
 *     run      tables whose keys follow each other: all of a level, or one of level 0
 *     window   some blocks of a table, read together; while one is used, the next one is read
 *     record   the key is put together in `key`; the value stays where it is in `bytes`
 *
 * A key in a table is the user's key and 8 bytes: the kind of the change (1 a value, 0 a deletion),
 * and its sequence number, little-endian.
 */
import type { DiskFile } from "@quorate/host";
import { ByteReader, BytesDamage, TwoBuffers, word } from "./bytes.ts";
import { uncompress, uncompressedLength, uncompressInto } from "./snappy.ts";
import { FOOT_BYTES, handleAt, TRAILER_BYTES } from "./table.ts";

/**
 * Bytes of blocks that are read together; one block always fits. What is in them, at most some
 * twenty times as much, is used in one turn.
 */
export const WINDOW_BYTES: number = 64 << 10;
/** Bytes of the sequence number and the kind behind a user's key. */
export const MARK_BYTES = 8;
const COMPRESSED = 1;
/** No block is near this size: it has 4 KiB, or one large record. */
const MAX_BLOCK_BYTES = 256 << 20;

/** A table to be read. */
export interface OpenTable {
  readonly file: DiskFile;
  readonly sizeBytes: number;
  /** None of its keys is below the range. */
  readonly isWithin: boolean;
}

/** Some blocks of a table that are read together. */
interface Window {
  readonly places: BlockPlaces;
  /** Blocks: the first one, and the one behind the last. */
  readonly first: number;
  readonly end: number;
  readonly bytes: Uint8Array;
  /** Of the first byte in the file. */
  readonly offset: number;
}

/** Where the blocks of a table are. */
interface BlockPlaces {
  readonly offsets: number[];
  readonly lengths: number[];
}

const NO_BLOCKS: BlockPlaces = { offsets: [], lengths: [] };

/** One run; `key`, `bytes` and what is in them are valid until the next call. */
export class TableRun {
  /** The key of the present record, with its mark. */
  key: Uint8Array = new Uint8Array(256);
  keyLength = 0;
  /** The bytes in which the present record's value is. */
  bytes: Uint8Array = new Uint8Array(0);
  valueStart = 0;
  valueEnd = 0;
  /** The present record has been used: `advance` goes to the next one. */
  isUsed = true;
  /** Nothing is left. */
  isDone = false;
  readonly #tables: readonly OpenTable[];
  readonly #from: Uint8Array;
  /** What is read next: the table and its blocks, and the first block that is in no window. */
  #table = -1;
  #places: BlockPlaces = NO_BLOCKS;
  #block = 0;
  #window: Window = {
    places: NO_BLOCKS,
    first: 0,
    end: 0,
    bytes: new Uint8Array(0),
    offset: 0,
  };
  /** The next block of the window. */
  #inWindow = 0;
  /** The window after it, while it is read; undefined when nothing is left. */
  #ahead: Promise<Window | undefined> | undefined;
  /** Of the window and of the one ahead. */
  readonly #buffers = new TwoBuffers();
  /** The content of the present block, if that is compressed. */
  #plain: Uint8Array = new Uint8Array(0);
  /** In the present block: the next record, and the end of its records. */
  #at = 0;
  #end = 0;

  /** @param from user keys below it may be left out, a block at a time */
  constructor(tables: readonly OpenTable[], from: Uint8Array) {
    this.#tables = tables;
    this.#from = from;
  }

  /** Goes to the next record; false if the next window has to be read first, or nothing is left. */
  advance(): boolean {
    while (this.#at >= this.#end) {
      if (this.#inWindow === this.#window.end) {
        this.isDone = this.#isLast && this.#ahead === undefined;
        return false;
      }
      this.#enterBlock(this.#inWindow++);
    }
    const shared = this.#varint();
    const own = this.#varint();
    const valueLength = this.#varint();
    const length = shared + own;
    if (shared > this.keyLength || length < MARK_BYTES || this.#at + own + valueLength > this.#end)
      throw this.#damage("a record of a block makes no sense");
    if (length > this.key.length) this.#growKey(length);
    const { key, bytes } = this;
    let at = this.#at;
    for (let i = shared; i < length; i++) key[i] = bytes[at++];
    this.keyLength = length;
    this.valueStart = at;
    this.valueEnd = at + valueLength;
    this.#at = this.valueEnd;
    this.isUsed = false;
    return true;
  }

  /** Goes to the next window, if `advance` needs one. @throws DiskError, BytesDamage */
  async refill(): Promise<void> {
    if (this.#at < this.#end || this.#inWindow < this.#window.end) return;
    const next = await (this.#ahead ?? this.#readWindow());
    this.#ahead = undefined;
    if (next === undefined) {
      this.isDone = true;
      return;
    }
    this.#window = next;
    this.#inWindow = next.first;
    if (this.#isLast) return;
    this.#ahead = this.#readWindow();
    // A failure is for the one that waits for it; the files may be closed before.
    this.#ahead.catch(() => {});
  }

  /** Reads the blocks that follow; undefined where there are none. */
  async #readWindow(): Promise<Window | undefined> {
    while (this.#block === this.#places.offsets.length) {
      if (this.#isLast) return undefined;
      this.#places = await placesIn(this.#tables[++this.#table], this.#from);
      this.#block = 0;
    }
    const places = this.#places;
    const { offsets, lengths } = places;
    const first = this.#block;
    const offset = offsets[first];
    let sizeBytes = 0;
    while (this.#block < offsets.length) {
      const endBytes = offsets[this.#block] + lengths[this.#block] + TRAILER_BYTES;
      if (sizeBytes > 0 && endBytes - offset > WINDOW_BYTES) break;
      sizeBytes = endBytes - offset;
      this.#block++;
    }
    const bytes = this.#buffers.take(Math.max(sizeBytes, WINDOW_BYTES));
    const { file } = this.#tables[this.#table];
    await readFully(file, bytes.subarray(0, sizeBytes), offset);
    return { places, first, end: this.#block, bytes, offset };
  }

  /** Nothing is left to be read. */
  get #isLast(): boolean {
    return this.#table + 1 >= this.#tables.length && this.#block === this.#places.offsets.length;
  }

  #enterBlock(block: number): void {
    const { places, bytes: buffer, offset } = this.#window;
    const start = places.offsets[block] - offset;
    const length = places.lengths[block];
    if (buffer[start + length] === COMPRESSED) {
      const plainBytes = uncompressedLength(buffer, start, start + length);
      if (!(plainBytes <= MAX_BLOCK_BYTES)) throw this.#damage("a block cannot be uncompressed");
      if (plainBytes > this.#plain.length) this.#plain = new Uint8Array(2 * plainBytes);
      if (!uncompressInto(this.#plain, buffer, start, start + length))
        throw this.#damage("a block cannot be uncompressed");
      this.bytes = this.#plain;
      this.#at = 0;
      this.#end = recordsEnd(this.#plain, 0, plainBytes);
    } else {
      this.bytes = buffer;
      this.#at = start;
      this.#end = recordsEnd(buffer, start, start + length);
    }
    if (this.#end < this.#at) throw this.#damage("a block is too short");
    this.keyLength = 0;
  }

  #varint(): number {
    const { bytes } = this;
    const byte = bytes[this.#at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let scale = 0x80; ; scale *= 0x80) {
      if (this.#at >= this.#end) throw this.#damage("a number is cut short");
      const next = bytes[this.#at++];
      value += (next & 0x7f) * scale;
      if (next < 0x80) return value;
    }
  }

  #growKey(length: number): void {
    const key = new Uint8Array(2 * length);
    key.set(this.key);
    this.key = key;
  }

  #damage(text: string): BytesDamage {
    return new BytesDamage(this.#window.offset, text);
  }
}

/** The end of a block's records: its restart points, and their number, are behind them. */
function recordsEnd(bytes: Uint8Array, start: number, end: number): number {
  return end - start < 4 ? -1 : end - 4 - 4 * word(bytes, end - 4);
}

async function readFully(file: DiskFile, target: Uint8Array, position: number): Promise<void> {
  const count = await file.readLater(target, position);
  if (count !== target.length) throw new BytesDamage(position + count, "the file is cut short");
}

/** The blocks of a table but for those whose keys are all below `from`. */
async function placesIn(
  { file, sizeBytes, isWithin }: OpenTable,
  from: Uint8Array,
): Promise<BlockPlaces> {
  const foot = new Uint8Array(FOOT_BYTES);
  await readFully(file, foot, sizeBytes - FOOT_BYTES);
  const reader = new ByteReader(foot, sizeBytes - FOOT_BYTES);
  handleAt(reader);
  const { offset, length } = handleAt(reader);
  const stored = new Uint8Array(length + 1);
  await readFully(file, stored, offset);
  const raw = stored.subarray(0, length);
  const index = stored[length] === COMPRESSED ? uncompress(raw, MAX_BLOCK_BYTES) : raw;
  if (index === undefined) throw new BytesDamage(offset, "a block cannot be uncompressed");
  return placesOf(index, offset, isWithin ? undefined : from);
}

function placesOf(index: Uint8Array, offset: number, from: Uint8Array | undefined): BlockPlaces {
  const places: BlockPlaces = { offsets: [], lengths: [] };
  const reader = new ByteReader(index, offset, 0, recordsEnd(index, 0, index.length));
  let key = new Uint8Array(0);
  while (!reader.isAtEnd) {
    const shared = reader.varint();
    const own = reader.varint();
    reader.varint();
    if (from !== undefined) {
      const next = new Uint8Array(shared + own);
      next.set(key.subarray(0, shared));
      next.set(index.subarray(reader.at, reader.at + own), shared);
      key = next;
    }
    reader.skip(own);
    const place = handleAt(reader);
    // The entry's key is not below any key of its block.
    if (from !== undefined && compareUserKeys(key, key.length - MARK_BYTES, from, from.length) < 0)
      continue;
    places.offsets.push(place.offset);
    places.lengths.push(place.length);
  }
  return places;
}

/** Compares the first bytes of two keys: `aLength` of a with `bLength` of b. */
export function compareUserKeys(
  a: Uint8Array,
  aLength: number,
  b: Uint8Array,
  bLength: number,
): number {
  const length = Math.min(aLength, bLength);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return aLength - bLength;
}
