/**
 * Keys of the bucket "key": one record for each change, under the revision that made it (etcd's
 * format).
 *
 *     8 bytes  main    the store's revision, big-endian; all changes of a transaction share it
 *     1 byte   '_'
 *     8 bytes  sub     the change's position in its transaction, from 0, big-endian
 *     1 byte   't'     only for a deletion (a tombstone)
 *
 * Byte order is the order of changes.
 */
import { alloc, type ResponseHeader, readU64BE, writeU32BE, writeU64BE } from "@quorate/proto";

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
