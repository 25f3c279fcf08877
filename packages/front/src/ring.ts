/**
 * A ring of records in shared memory, from one thread to another: one writes, one reads.
 *
 *     byte 0     written   bytes that were ever written, modulo 2^32      by the writer
 *     byte 64    taken     bytes that were ever taken, modulo 2^32        by the reader
 *     byte 128   asleep    1: the reader waits for a wake-up              set by the reader
 *     byte 192   full      1: the writer waits for space                  set by the writer
 *     byte 256   the region: a power of two of bytes
 *
 * A record has 24 bytes and a payload, padded to a multiple of 8. It may go over the end of the
 * region to its beginning. Numbers are little-endian.
 *
 *     0   u32   bytes of the payload, at most MAX_PIECE_BYTES
 *     4   u8    kind
 *     5   u8    1: more pieces of the same message follow, 0: this is the last one
 *     6   u16   detail: a method, a status, ... as the kind says
 *     8   u32   call
 *     12  u32   value: an identity, a number of bytes, ... as the kind says
 *     16  f64   time: milliseconds, as the kind says
 *     24  payload
 *
 * What the writer has written is seen by the reader when it publishes, once for all records of a
 * turn. If the reader is asleep then, it is to be woken: one wake-up for a batch. The reader copies
 * what there is into memory of its own before it looks at it, and frees the space at once; so the
 * bytes that it hands on are its own, and nothing that the writer does later changes them.
 *
 * The reader trusts nothing in the memory. It keeps its own position, and throws RingError for a
 * count or a length that no writer of this file makes. The writer does the same with `taken`.
 */

import { CodedError, EMPTY } from "@quorate/proto";
import type { MessageBytes } from "@quorate/rpc";

const WRITTEN = 0;
const TAKEN = 16;
const ASLEEP = 32;
const FULL = 48;
/** Bytes before the region. Each word of them has a cache line of its own. */
const REGION_AT = 256;

export const RECORD_BYTES = 24;
/** The longest payload of one record. Longer messages have several. */
export const MAX_PIECE_BYTES: number = 32 * 1024;
/** The region of a ring: a few of the longest records, and a thousand common ones. */
export const RING_BYTES: number = 1024 * 1024;
const MAX_RECORD_BYTES = RECORD_BYTES + MAX_PIECE_BYTES;
/** The reader's own memory: it has space for a few of the longest records. */
const SLAB_BYTES: number = 128 * 1024;
/** From this size on, a copy by the platform is faster than a loop. */
const COPY_BYTES = 64;

const IS_LITTLE_ENDIAN = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** The memory holds what no writer of this file makes. */
export class RingError extends CodedError<"BrokenRing"> {
  constructor(problem: string) {
    super("RingError", "BrokenRing", `broken ring: ${problem}`);
  }
}

/** What a record has besides its payload. */
export interface RecordHead {
  kind: number;
  detail: number;
  call: number;
  value: number;
  timeMs: number;
}

/** Memory for a ring; zeros are an empty one. @param bytes of the region, a power of two */
export function ringMemory(bytes: number = RING_BYTES): SharedArrayBuffer {
  return new SharedArrayBuffer(REGION_AT + bytes);
}

/** The words and the region of a ring. Throws RangeError for a size that is none of a ring. */
class Ring {
  readonly words: Int32Array<SharedArrayBuffer>;
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  readonly int32: Int32Array<SharedArrayBuffer>;
  readonly float64: Float64Array<SharedArrayBuffer>;
  readonly size: number;

  constructor(memory: SharedArrayBuffer) {
    const size = memory.byteLength - REGION_AT;
    if (size < 2 * MAX_RECORD_BYTES || (size & (size - 1)) !== 0 || !IS_LITTLE_ENDIAN)
      throw new RangeError(`no ring: a region of ${size} bytes`);
    this.size = size;
    this.words = new Int32Array(memory, 0, REGION_AT / 4);
    this.bytes = new Uint8Array(memory, REGION_AT);
    this.int32 = new Int32Array(memory, REGION_AT);
    this.float64 = new Float64Array(memory, REGION_AT);
  }
}

const padded = (bytes: number): number => (bytes + 7) & ~7;

export class RingWriter {
  readonly #ring: Ring;
  #at = 0;
  #published = 0;
  #taken = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#ring = new Ring(memory);
  }

  /**
   * Writes a record, which the reader sees after `publish`. False where there is no space: the
   * reader then notes that the writer is to be woken when it has taken something.
   * @param size of the payload, at most MAX_PIECE_BYTES
   * @throws RingError if the reader has taken more than there was
   */
  write(head: RecordHead, payload: MessageBytes, size: number, isLast: boolean): boolean {
    const ring = this.#ring;
    const total = RECORD_BYTES + padded(size);
    if (this.#free() < total && !this.#awaitSpace(total)) return false;
    const mask = ring.size - 1;
    const at = this.#at;
    const words = ring.int32;
    words[(at & mask) >>> 2] = size;
    words[((at + 4) & mask) >>> 2] = head.kind | (isLast ? 0 : 1 << 8) | (head.detail << 16);
    words[((at + 8) & mask) >>> 2] = head.call;
    words[((at + 12) & mask) >>> 2] = head.value;
    ring.float64[((at + 16) & mask) >>> 3] = head.timeMs;
    const start = (at + RECORD_BYTES) >>> 0;
    if (payload instanceof Uint8Array) this.#put(payload, start);
    else {
      let next = start;
      for (let i = 0; i < payload.length; next += payload[i++].length) this.#put(payload[i], next);
    }
    this.#at = (at + total) >>> 0;
    return true;
  }

  /** Shows the reader what was written. True if it sleeps and is to be woken. */
  publish(): boolean {
    if (this.#published === this.#at) return false;
    this.#published = this.#at;
    const { words } = this.#ring;
    Atomics.store(words, WRITTEN, this.#at | 0);
    return Atomics.load(words, ASLEEP) === 1 && Atomics.exchange(words, ASLEEP, 0) === 1;
  }

  #put(piece: Uint8Array, at: number): void {
    const { bytes, size } = this.#ring;
    const start = at & (size - 1);
    if (start + piece.length > size) {
      const first = size - start;
      bytes.set(piece.subarray(0, first), start);
      bytes.set(piece.subarray(first), 0);
    } else if (piece.length < COPY_BYTES)
      for (let i = 0; i < piece.length; i++) bytes[start + i] = piece[i];
    else bytes.set(piece, start);
  }

  #free(): number {
    return this.#ring.size - ((this.#at - this.#taken) >>> 0);
  }

  #look(): void {
    const taken = Atomics.load(this.#ring.words, TAKEN) >>> 0;
    const moved = (taken - this.#taken) >>> 0;
    if (moved > (this.#published - this.#taken) >>> 0 || (moved & 7) !== 0)
      throw new RingError("more is taken than there was");
    this.#taken = taken;
  }

  /** Looks whether there is space; if not, has the reader say when it has taken something. */
  #awaitSpace(total: number): boolean {
    this.#look();
    if (this.#free() >= total) return true;
    Atomics.store(this.#ring.words, FULL, 1);
    // It may have taken something before it could see that.
    this.#look();
    return this.#free() >= total;
  }
}

/** A record as the reader sees it; it is another one at the next `next`. */
export interface RingRecord extends Readonly<RecordHead> {
  readonly isLast: boolean;
  /** The reader's own bytes. */
  readonly payload: Uint8Array;
}

export class RingReader implements RingRecord {
  readonly #ring: Ring;
  #taken = 0;
  #slab = new Uint8Array(0);
  #words = new Int32Array(0);
  #times = new Float64Array(0);
  /** Where in the slab the next record begins, and where what was copied ends. */
  #at = 0;
  #end = 0;
  kind = 0;
  detail = 0;
  call = 0;
  value = 0;
  timeMs = 0;
  isLast = true;
  payload: Uint8Array = this.#slab;

  constructor(memory: SharedArrayBuffer) {
    this.#ring = new Ring(memory);
  }

  /**
   * Copies what there is, as far as memory of one slab goes. False if there is nothing.
   * @throws RingError
   */
  readBatch(): boolean {
    const ring = this.#ring;
    const written = Atomics.load(ring.words, WRITTEN) >>> 0;
    const available = (written - this.#taken) >>> 0;
    if (available === 0) return false;
    if (available > ring.size || (available & 7) !== 0) throw new RingError("a count of bytes");
    if (this.#slab.length - this.#end < Math.min(available, MAX_RECORD_BYTES)) this.#newSlab();
    const size = Math.min(available, this.#slab.length - this.#end);
    const from = this.#taken & (ring.size - 1);
    const first = Math.min(size, ring.size - from);
    this.#slab.set(ring.bytes.subarray(from, from + first), this.#end);
    if (first < size) this.#slab.set(ring.bytes.subarray(0, size - first), this.#end + first);
    this.#at = this.#end;
    this.#end += size;
    this.#keepWhole(size === available);
    return true;
  }

  /**
   * The next record of the batch: this object has its fields. False behind the last one.
   */
  next(): boolean {
    const at = this.#at;
    if (at === this.#end) return false;
    const word = at >>> 2;
    const words = this.#words;
    const size = words[word];
    const kinds = words[word + 1];
    this.kind = kinds & 0xff;
    this.isLast = (kinds & 0xff00) === 0;
    this.detail = kinds >>> 16;
    this.call = words[word + 2] >>> 0;
    this.value = words[word + 3] >>> 0;
    this.timeMs = this.#times[(at + 16) >>> 3];
    const start = at + RECORD_BYTES;
    this.payload = size === 0 ? EMPTY : new Uint8Array(this.#slab.buffer, start, size);
    this.#at = start + padded(size);
    return true;
  }

  /** The reader is going to sleep. False if there is something to read: then it does not. */
  sleep(): boolean {
    const { words } = this.#ring;
    Atomics.store(words, ASLEEP, 1);
    if (Atomics.load(words, WRITTEN) >>> 0 === this.#taken) return true;
    Atomics.store(words, ASLEEP, 0);
    return false;
  }

  /** True if the writer waits for space and is to be woken. */
  takesFromFull(): boolean {
    const { words } = this.#ring;
    return Atomics.load(words, FULL) === 1 && Atomics.exchange(words, FULL, 0) === 1;
  }

  /**
   * Checks all that was copied, gives back the part of a record at the end, whose rest is not
   * copied, and frees the space of the others.
   */
  #keepWhole(isAll: boolean): void {
    let at = this.#at;
    while (this.#end - at >= RECORD_BYTES) {
      const size = this.#words[at >>> 2];
      const more = this.#slab[at + 5];
      if (size < 0 || size > MAX_PIECE_BYTES || more > 1) throw new RingError("a record's head");
      const next = at + RECORD_BYTES + padded(size);
      if (next > this.#end) break;
      at = next;
    }
    if (at !== this.#end && (isAll || at === this.#at)) throw new RingError("part of a record");
    this.#end = at;
    this.#taken = (this.#taken + (at - this.#at)) >>> 0;
    Atomics.store(this.#ring.words, TAKEN, this.#taken | 0);
  }

  #newSlab(): void {
    const buffer = new ArrayBuffer(SLAB_BYTES);
    this.#slab = new Uint8Array(buffer);
    this.#words = new Int32Array(buffer);
    this.#times = new Float64Array(buffer);
    this.#end = 0;
  }
}
