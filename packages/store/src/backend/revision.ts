/**
 * The records of the bucket "key": one for each change, an mvccpb.KeyValue under the revision that
 * made it (etcd's format).
 *
 *     8 bytes  main    the store's revision, big-endian; all changes of a transaction share it
 *     1 byte   '_'
 *     8 bytes  sub     the change's position in its transaction, from 0, big-endian
 *     1 byte   't'     only for a deletion (a tombstone)
 *
 * Byte order is the order of changes.
 */

import type { KeyspaceWrite } from "@quorate/host";
import {
  alloc,
  copyBytes,
  EMPTY,
  KeyValue,
  type ResponseHeader,
  readU64BE,
  sharedWriter,
  writeU32BE,
  writeU64BE,
} from "@quorate/proto";
import { violated } from "./invariants.ts";

/** Length of a revision key, and of the records that hold a revision. */
export const REVISION_BYTES = 17;
/** Length of the key of a deletion. */
export const TOMBSTONE_BYTES: number = REVISION_BYTES + 1;
const SEPARATOR = 0x5f;
const TOMBSTONE = 0x74;

/** A decoded revision key. */
export interface Revision {
  readonly main: number;
  readonly sub: number;
  readonly tombstone: boolean;
}

/** The key of a change; main and sub are safe integers of 0 or more (else RangeError). */
export function encodeRevision(main: number, sub: number, tombstone: boolean): Uint8Array {
  const bytes = alloc(tombstone ? TOMBSTONE_BYTES : REVISION_BYTES);
  writeRevision(bytes, 0, main, sub, tombstone);
  return bytes;
}

/** Writes the key of a change into `bytes` at `at`, where there must be space. */
export function writeRevision(
  bytes: Uint8Array,
  at: number,
  main: number,
  sub: number,
  tombstone: boolean,
): void {
  writeU64BE(bytes, main, at);
  bytes[at + 8] = SEPARATOR;
  if (sub < 0x1_0000_0000) {
    writeU32BE(bytes, 0, at + 9);
    writeU32BE(bytes, sub, at + 13);
  } else {
    writeU64BE(bytes, sub, at + 9);
  }
  if (tombstone) bytes[at + REVISION_BYTES] = TOMBSTONE;
}

/** The revision in a key; undefined if the bytes are not one. */
export function decodeRevision(bytes: Uint8Array): Revision | undefined {
  const tombstone = bytes.length === REVISION_BYTES + 1;
  if (!tombstone && bytes.length !== REVISION_BYTES) return undefined;
  if (bytes[8] !== SEPARATOR || (tombstone && bytes[REVISION_BYTES] !== TOMBSTONE))
    return undefined;
  // Above 2^53 neither part can be a revision: refused like any other wrong byte.
  if (bytes[0] !== 0 || bytes[1] > 0x1f || bytes[9] !== 0 || bytes[10] > 0x1f) return undefined;
  return { main: readU64BE(bytes, 0), sub: readU64BE(bytes, 9), tombstone };
}

/**
 * Negative if the first change is before the second, 0 if it is the same, positive if it is after
 * it.
 */
export function compareRevisions(aMain: number, aSub: number, bMain: number, bSub: number): number {
  return aMain !== bMain ? aMain - bMain : aSub - bSub;
}

/** The store's part of a response header; the member adds itself and the term. */
export function headerAt(revision: number): ResponseHeader {
  return { clusterId: 0n, memberId: 0n, revision, raftTerm: 0 };
}

/** A larger record has a block of its own. */
const BLOCK_BYTES = 64 << 10;
const FIRST_CAPACITY = 64;

/**
 * Records that wait for a batch, in the order of their revisions: key and value
 * of each one behind the other in a few blocks of bytes, and where they are in arrays of numbers.
 * So a record that waits is no object, which the collector would look at again and again, and is
 * copied once, from where it was encoded.
 *
 *     block     k rev 1.0 | KeyValue | k rev 2.0 | KeyValue | ...
 *     #starts   ^           ^ #values              ^
 *
 * A record that is read is a view of its block, which nobody writes again: the block lives as long
 * as views of it. Bound: that of a batch (backend.ts).
 */
export class RevisionRecords {
  readonly #prefix: number;
  #count = 0;
  #sizeBytes = 0;
  #block = new Uint8Array(0);
  #used = 0;
  readonly #blocks: Uint8Array[] = [];
  /** Of each record: its revision, its block, and where its key and value begin and it ends. */
  #mains = new Float64Array(0);
  #subs = new Float64Array(0);
  #blockOf = new Int32Array(0);
  #starts = new Int32Array(0);
  #values = new Int32Array(0);
  #ends = new Int32Array(0);

  /** @param prefix the bucket's byte, before each key */
  constructor(prefix: number) {
    this.#prefix = prefix;
  }

  get count(): number {
    return this.#count;
  }

  /** The main revision of the record that was added last; 0 where there is none. */
  get lastMain(): number {
    return this.#count === 0 ? 0 : this.#mains[this.#count - 1];
  }

  /** Bytes of keys, without the bucket, and values. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Adds the record of a change, whose revision is above those before.
   * @returns the length of its value
   */
  add(main: number, sub: number, tombstone: boolean, record: Partial<KeyValue>): number {
    const at = this.#count;
    const last = at - 1;
    if (
      at > 0 &&
      (this.#mains[last] > main || (this.#mains[last] === main && this.#subs[last] >= sub))
    )
      violated("STORE-11", `${main}.${sub} after ${this.#mains[last]}.${this.#subs[last]}`);
    sharedWriter.reset();
    KeyValue.encodeTo(sharedWriter, record);
    const valueBytes = sharedWriter.length;
    const keyBytes = 1 + (tombstone ? TOMBSTONE_BYTES : REVISION_BYTES);
    const start = this.#reserve(keyBytes + valueBytes);
    this.#block[start] = this.#prefix;
    writeRevision(this.#block, start + 1, main, sub, tombstone);
    sharedWriter.copyTo(this.#block, start + keyBytes);
    if (at === this.#mains.length) this.#grow(Math.max(FIRST_CAPACITY, at * 2));
    this.#mains[at] = main;
    this.#subs[at] = sub;
    this.#blockOf[at] = this.#blocks.length - 1;
    this.#starts[at] = start;
    this.#values[at] = start + keyBytes;
    this.#ends[at] = this.#used;
    this.#count = at + 1;
    this.#sizeBytes += keyBytes - 1 + valueBytes;
    return valueBytes;
  }

  /** The value of the record that was added last; there must be one. */
  last(): Uint8Array {
    return this.#value(this.#count - 1);
  }

  /** The value of the record of a revision; undefined where it is not here. */
  find(main: number, sub: number): Uint8Array | undefined {
    let low = 0;
    let high = this.#count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const of = this.#mains[middle];
      if (of < main || (of === main && this.#subs[middle] < sub)) low = middle + 1;
      else high = middle;
    }
    const isThere = low < this.#count && this.#mains[low] === main && this.#subs[low] === sub;
    return isThere ? this.#value(low) : undefined;
  }

  #value(place: number): Uint8Array {
    const { buffer } = this.#blocks[this.#blockOf[place]];
    const start = this.#values[place];
    return new Uint8Array(buffer, start, this.#ends[place] - start);
  }

  /** Adds all of `other`, which must not be used afterwards, and whose revisions are above these. */
  addAll(other: RevisionRecords): void {
    const at = this.#count;
    const count = at + other.#count;
    if (other.#count === 0) return;
    if (count > this.#mains.length) this.#grow(Math.max(count, at * 2));
    const firstBlock = this.#blocks.length;
    for (const block of other.#blocks) this.#blocks.push(block);
    this.#mains.set(other.#mains.subarray(0, other.#count), at);
    this.#subs.set(other.#subs.subarray(0, other.#count), at);
    this.#starts.set(other.#starts.subarray(0, other.#count), at);
    this.#values.set(other.#values.subarray(0, other.#count), at);
    this.#ends.set(other.#ends.subarray(0, other.#count), at);
    for (let i = 0; i < other.#count; i++) this.#blockOf[at + i] = firstBlock + other.#blockOf[i];
    this.#block = other.#block;
    this.#used = other.#used;
    this.#count = count;
    this.#sizeBytes += other.#sizeBytes;
  }

  /**
   * The records, for a batch. The same object is yielded for each, and the same bytes for all keys
   * and values of one length: views of the blocks would be as much garbage as a record.
   */
  *[Symbol.iterator](): Generator<KeyspaceWrite> {
    const write = { key: EMPTY, value: EMPTY };
    const [keys, values] = [new Copies(), new Copies()];
    for (let i = 0; i < this.#count; i++) {
      const block = this.#blocks[this.#blockOf[i]];
      write.key = keys.of(block, this.#starts[i], this.#values[i]);
      write.value = values.of(block, this.#values[i], this.#ends[i]);
      yield write;
    }
  }

  /** Makes space in the last block. Returns where it begins. */
  #reserve(bytes: number): number {
    if (this.#used + bytes > this.#block.length) {
      this.#block = new Uint8Array(Math.max(BLOCK_BYTES, bytes));
      this.#blocks.push(this.#block);
      this.#used = 0;
    }
    const start = this.#used;
    this.#used = start + bytes;
    return start;
  }

  #grow(capacity: number): void {
    this.#mains = grown(this.#mains, new Float64Array(capacity));
    this.#subs = grown(this.#subs, new Float64Array(capacity));
    this.#blockOf = grown(this.#blockOf, new Int32Array(capacity));
    this.#starts = grown(this.#starts, new Int32Array(capacity));
    this.#values = grown(this.#values, new Int32Array(capacity));
    this.#ends = grown(this.#ends, new Int32Array(capacity));
  }
}

/** Longer bytes are not copied. */
const MAX_SCRATCH_BYTES = 1024;

/** Copies of bytes in one place, which is theirs until the next copy. */
class Copies {
  readonly #scratch = new Uint8Array(MAX_SCRATCH_BYTES);
  /** By their length. */
  readonly #views: Uint8Array[] = [];

  of(bytes: Uint8Array, start: number, end: number): Uint8Array {
    const length = end - start;
    if (length > MAX_SCRATCH_BYTES) return new Uint8Array(bytes.buffer, start, length);
    copyBytes(bytes, start, end, this.#scratch, 0);
    return (this.#views[length] ??= new Uint8Array(this.#scratch.buffer, 0, length));
  }
}

/** `to`, which begins with the numbers of `from`. */
function grown<T extends Float64Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
