/**
 * Encodes records into frames, in one reusable buffer.
 *
 * Entries are encoded straight into their frame, in one pass and without allocation. Data of 8 KiB
 * or more is not copied but returned as a chunk of its own (measured for each entry: with 4 KiB,
 * 0.27 µs by copying and 0.23 µs as a chunk; with 16 KiB, 1.0 and 0.5 µs).
 */
import { crc32c, putVarint, type raftpb, varintSize } from "@quorate/proto";
import { encodeMark, MARK_BYTES, RecordType, WORD_BYTES } from "./format.ts";

const INITIAL_BYTES = 64 << 10;
/** A buffer that grew past this size for one batch is replaced after it. */
const MAX_KEPT_BYTES = 1 << 20;
/** Data of at least this many bytes is a chunk of its own. */
const CHUNK_BYTES = 8 << 10;
/** Upper bound of a frame's bytes besides the data: word, tags, numbers, lengths, padding. */
const MAX_OVERHEAD_BYTES = 64;
/** Bytes reserved for the checksum, which is known only after the bytes behind it. */
const MAX_CRC_BYTES = 5;

/** Collects frames for one write. */
export class FrameEncoder {
  /** The rolling checksum over all records encoded so far. */
  crc: number;
  #buffer = new Uint8Array(INITIAL_BYTES);
  /** Bytes of the buffer in use. */
  #end = 0;
  /** Data that is not in the buffer, and the offset in the buffer where it belongs. */
  #loose: { readonly at: number; readonly data: Uint8Array }[] = [];
  #looseBytes = 0;
  readonly #mark = new Uint8Array(MARK_BYTES);

  /** @param crc the rolling checksum to continue from */
  constructor(crc: number) {
    this.crc = crc;
  }

  /** Bytes of all frames since `reset`. */
  get sizeBytes(): number {
    return this.#end + this.#looseBytes;
  }

  /** Drops the frames and keeps the checksum. */
  reset(): void {
    this.#end = 0;
    this.#loose = [];
    this.#looseBytes = 0;
    if (this.#buffer.length > MAX_KEPT_BYTES) this.#buffer = new Uint8Array(INITIAL_BYTES);
  }

  /**
   * The frames, to be written one after the other. Views: valid until the next `reset`, and while
   * the entries' data is unchanged.
   */
  chunks(): Uint8Array[] {
    const chunks: Uint8Array[] = [];
    let start = 0;
    for (const { at, data } of this.#loose) {
      chunks.push(this.#buffer.subarray(start, at), data);
      start = at;
    }
    chunks.push(this.#buffer.subarray(start, this.#end));
    return chunks;
  }

  /** Adds an entry record. */
  entry(entry: raftpb.Entry): void {
    const { data } = entry;
    const isLoose = data.length >= CHUNK_BYTES;
    this.#reserve(MAX_OVERHEAD_BYTES + (isLoose ? 0 : data.length));
    const buffer = this.#buffer;
    const wordAt = this.#end;
    const crcAt = this.#openRecord(RecordType.Entry);

    const headBytes =
      4 +
      varintSize(entry.term) +
      varintSize(entry.index) +
      (data.length > 0 ? 1 + varintSize(data.length) : 0);
    let at = crcAt + MAX_CRC_BYTES;
    buffer[at++] = 0x1a;
    at = putVarint(buffer, at, headBytes + data.length);
    const entryAt = at;
    buffer[at++] = 0x08;
    buffer[at++] = entry.type;
    buffer[at++] = 0x10;
    at = putVarint(buffer, at, entry.term);
    buffer[at++] = 0x18;
    at = putVarint(buffer, at, entry.index);
    if (data.length > 0) {
      buffer[at++] = 0x22;
      at = putVarint(buffer, at, data.length);
    }
    if (isLoose) {
      this.crc = crc32c(crc32c(this.crc, buffer, entryAt, at), data);
    } else {
      buffer.set(data, at);
      at += data.length;
      this.crc = crc32c(this.crc, buffer, entryAt, at);
    }
    at = this.#putCrc(crcAt, at);
    if (isLoose) {
      this.#loose.push({ at, data });
      this.#looseBytes += data.length;
    }
    this.#closeFrame(wordAt, at, isLoose ? data.length : 0);
  }

  /** Adds a record of metadata, a state or a snapshot mark. */
  record(type: RecordType, data: Uint8Array): void {
    this.crc = crc32c(this.crc, data);
    this.#plain(type, data);
  }

  /** Adds a crc record with the current rolling checksum. */
  crcRecord(): void {
    this.#plain(RecordType.Crc, undefined);
  }

  /** Adds a crc record with a durable mark. */
  mark(durableBytes: number): void {
    encodeMark(this.#mark, durableBytes);
    this.#plain(RecordType.Crc, this.#mark);
  }

  /** Adds a record that does not change the rolling checksum. */
  #plain(type: RecordType, data: Uint8Array | undefined): void {
    this.#reserve(MAX_OVERHEAD_BYTES + (data?.length ?? 0));
    const wordAt = this.#end;
    let at = putVarint(this.#buffer, this.#openRecord(type), this.crc);
    if (data && data.length > 0) {
      this.#buffer[at++] = 0x1a;
      at = putVarint(this.#buffer, at, data.length);
      this.#buffer.set(data, at);
      at += data.length;
    }
    this.#closeFrame(wordAt, at, 0);
  }

  /**
   * Writes a record's type and the tag of its checksum behind the space for the length word.
   * Returns the offset of the checksum.
   */
  #openRecord(type: RecordType): number {
    let at = this.#end + WORD_BYTES;
    this.#buffer[at++] = 0x08;
    this.#buffer[at++] = type;
    this.#buffer[at++] = 0x10;
    return at;
  }

  /**
   * Writes the checksum into the space reserved for it. In one of sixteen cases it is shorter, and
   * the bytes behind it move up. Returns the end of those bytes.
   */
  #putCrc(crcAt: number, end: number): number {
    const after = putVarint(this.#buffer, crcAt, this.crc);
    const spare = crcAt + MAX_CRC_BYTES - after;
    if (spare > 0) this.#buffer.copyWithin(after, crcAt + MAX_CRC_BYTES, end);
    return end - spare;
  }

  /** Writes the length word and the padding. */
  #closeFrame(wordAt: number, end: number, looseBytes: number): void {
    const buffer = this.#buffer;
    const recordBytes = end - wordAt - WORD_BYTES + looseBytes;
    const padBytes = (8 - (recordBytes % 8)) % 8;
    let at = wordAt;
    for (let rest = recordBytes; at < wordAt + 7; rest = Math.floor(rest / 0x100))
      buffer[at++] = rest % 0x100;
    buffer[at] = padBytes === 0 ? 0 : 0x80 | padBytes;
    this.#end = end + padBytes;
    buffer.fill(0, end, this.#end);
  }

  #reserve(bytes: number): void {
    if (this.#buffer.length - this.#end >= bytes) return;
    const larger = new Uint8Array(Math.max(this.#buffer.length * 2, this.#end + bytes));
    larger.set(this.#buffer.subarray(0, this.#end));
    this.#buffer = larger;
  }
}
