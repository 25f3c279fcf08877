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

/** A random uid (RFC 9562, version 4). */
export function newUid(random: Random): string {
  const hex = (value: number): string => (value >>> 0).toString(16).padStart(8, "0");
  const high = hex((random.uint32() & 0xffff0fff) | 0x4000);
  const low = hex((random.uint32() & 0x3fffffff) | 0x80000000);
  const parts = [hex(random.uint32()), high.slice(0, 4), high.slice(4), low.slice(0, 4)];
  return `${parts.join("-")}-${low.slice(4)}${hex(random.uint32())}`;
}
