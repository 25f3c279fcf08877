/** RangeResponse on the wire: a small one in one piece, a large one in pieces, among which are the stored records themselves. */
import { alloc, RangeResponse } from "@quorate/proto";
import type { MessageBytes } from "@quorate/rpc";

/** Below it, one copy costs less than many pieces do. */
export const MIN_PIECES_BYTES: number = 32 << 10;
/** The field kvs, with a length (2 << 3 | 2). */
const KVS_TAG = 0x12;

/** The encoded response; its records must not change before it is sent. */
export function encodeRange(response: RangeResponse): MessageBytes {
  const { header, kvs, more, count } = response;
  let bytes = 0;
  for (let i = 0; i < kvs.length; i++) bytes += kvs[i].length;
  if (bytes < MIN_PIECES_BYTES) return RangeResponse.encode(response);
  // Made as long as it gets: growing step by step, it would leave several times its size to the collector.
  const pieces = new Array<Uint8Array>(2 * kvs.length + 2);
  pieces[0] = RangeResponse.encode({ header });
  let before: Uint8Array | undefined;
  let beforeLength = -1;
  for (let i = 0; i < kvs.length; i++) {
    const record = kvs[i];
    // Records of one length follow each other often; they share what goes before them.
    if (before === undefined || record.length !== beforeLength) {
      before = tagAndLength(record.length);
      beforeLength = record.length;
    }
    pieces[2 * i + 1] = before;
    pieces[2 * i + 2] = record;
  }
  pieces[2 * kvs.length + 1] = RangeResponse.encode({ more, count });
  return pieces;
}

function tagAndLength(length: number): Uint8Array {
  let size = 2;
  for (let rest = length >>> 7; rest !== 0; rest >>>= 7) size++;
  const bytes = alloc(size);
  bytes[0] = KVS_TAG;
  let rest = length;
  for (let at = 1; at < size - 1; at++, rest >>>= 7) bytes[at] = (rest & 0x7f) | 0x80;
  bytes[size - 1] = rest;
  return bytes;
}
