/**
 * The common elements of LevelDB's tables and its manifest: varints, little-endian words, and
 * masked checksums.
 */
import { CodedError, crc32c, EMPTY } from "@quorate/proto";

/** Bytes that LevelDB does not write, with their position in the file. */
export class BytesDamage extends CodedError<"Damaged"> {
  readonly offset: number;
  constructor(offset: number, message: string) {
    super("BytesDamage", "Damaged", message);
    this.offset = offset;
  }
}

/**
 * Reads numbers in sequence. Throws BytesDamage past the end. @param base the offset of the bytes
 * in the file
 */
export class ByteReader {
  at: number;
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #base: number;

  constructor(bytes: Uint8Array, base: number, at = 0, end: number = bytes.length) {
    this.#bytes = bytes;
    this.#base = base;
    this.at = at;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#end;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.at >= this.#end)
        throw new BytesDamage(this.#base + this.at, "a number is cut short");
      const byte = this.#bytes[this.at++];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
    }
    if (!Number.isSafeInteger(value))
      throw new BytesDamage(this.#base + this.at, "a number is too large");
    return value;
  }

  /** Skips a length as a varint, and as many bytes. */
  skipText(): void {
    this.skip(this.varint());
  }

  /** A length as a varint, and as many bytes: a view. */
  text(): Uint8Array {
    const length = this.varint();
    this.skip(length);
    return this.#bytes.subarray(this.at - length, this.at);
  }

  skip(length: number): void {
    if (this.at + length > this.#end)
      throw new BytesDamage(this.#base + this.at, "a text is cut short");
    this.at += length;
  }
}

/** Four bytes, little-endian, as an unsigned number. */
export function word(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

/**
 * LevelDB's checksum for bytes[start, end): a CRC-32C, rotated and offset so that it can itself be
 * part of checksummed data.
 */
export function maskedCrc(bytes: Uint8Array, start: number, end: number): number {
  const crc = crc32c(0, bytes, start, end);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

/** Two buffers by turns: what is read into one can be used while the other is read into. */
export class TwoBuffers {
  #next: Uint8Array = EMPTY;
  #other: Uint8Array = EMPTY;

  /** A buffer of at least so many bytes, which is given out again by the next call but one. */
  take(sizeBytes: number): Uint8Array {
    const buffer = this.#next.length < sizeBytes ? new Uint8Array(sizeBytes) : this.#next;
    this.#next = this.#other;
    this.#other = buffer;
    return buffer;
  }
}
