/**
 * What LevelDB's tables and its manifest have in common: varints, little-endian words, and
 * checksums that are masked.
 */
import { crc32c } from "@quorate/proto";

/** Bytes that are not what LevelDB writes, with the place within the file. */
export class BytesDamage extends Error {
  readonly offset: number;
  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/**
 * Reads numbers one after the other. Throws BytesDamage past the end; `base` is where the bytes
 * begin in the file.
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

  /** Passes over a varint and as many bytes as it says. */
  skipText(): void {
    this.skip(this.varint());
  }

  skip(length: number): void {
    if (this.at + length > this.#end)
      throw new BytesDamage(this.#base + this.at, "a text is cut short");
    this.at += length;
  }
}

/** Four bytes, the lowest first, as an unsigned number. */
export function word(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

/**
 * The checksum that LevelDB writes for bytes[start, end): CRC-32C, turned and moved so that it can
 * be part of what is checked again.
 */
export function maskedCrc(bytes: Uint8Array, start: number, end: number): number {
  const crc = crc32c(0, bytes, start, end);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
