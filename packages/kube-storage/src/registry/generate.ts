/** Uids, and names made from metadata.generateName (apiserver: storage/names/generate.go). */
import type { Random } from "@quorate/host";

const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH = 5;
/** A longer base is cut, so that the name is a DNS label. */
export const MAX_NAME_BASE_LENGTH = 63 - SUFFIX_LENGTH;
/** How often a create with generateName tries another name. */
export const MAX_NAME_ATTEMPTS = 8;

/** The base with five random characters. */
export function generateName(base: string, random: Random): string {
  let name = base.slice(0, MAX_NAME_BASE_LENGTH);
  for (let drawn = 0; drawn < SUFFIX_LENGTH; drawn++) {
    name += ALPHABET[random.below(ALPHABET.length)];
  }
  return name;
}

/** Bytes as two hexadecimal digits; each request has a uid, so they are looked up. */
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).padStart(2, "0"),
);

function hexHigh(value: number): string {
  return HEX[value >>> 24] + HEX[(value >>> 16) & 255];
}

function hexLow(value: number): string {
  return HEX[(value >>> 8) & 255] + HEX[value & 255];
}

/** A random uid (RFC 9562, version 4). Not for secrets. */
export function newUid(random: Random): string {
  const high = (random.uint32() & 0xffff0fff) | 0x4000;
  const low = (random.uint32() & 0x3fffffff) | 0x80000000;
  const [first, last] = [random.uint32(), random.uint32()];
  const start = `${hexHigh(first)}${hexLow(first)}-${hexHigh(high)}-${hexLow(high)}`;
  return `${start}-${hexHigh(low)}-${hexLow(low)}${hexHigh(last)}${hexLow(last)}`;
}
