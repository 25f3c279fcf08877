/**
 * What stands before a field with a length in an encoded message: its tag, of one byte here, and
 * the length as a varint.
 */
import { alloc } from "./bytes.ts";
import { putVarint } from "./varint.ts";

/** A tag and a length of up to 2^35. */
export const MAX_PREFIX_BYTES = 6;

/** ResponseOp.response_range and TxnResponse.responses. */
export const RESPONSE_RANGE_TAG = 0x0a;
export const RESPONSES_TAG = 0x1a;

/** The prefix of a field. */
export function prefix(tag: number, length: number): Uint8Array {
  const bytes = alloc(MAX_PREFIX_BYTES);
  return bytes.subarray(0, writePrefix(bytes, 0, tag, length));
}

/** Writes the prefix of a field at `at`; returns where it ends. */
export function writePrefix(bytes: Uint8Array, at: number, tag: number, length: number): number {
  bytes[at] = tag;
  // The length of a message in a message may be 2^31 and more, which is refused only afterwards.
  return putVarint(bytes, at + 1, length);
}
