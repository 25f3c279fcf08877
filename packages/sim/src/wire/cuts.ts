/** Where a byte stream is cut on its way: a reader may get any part of what was written at once. */
import type { Random } from "@quorate/host";

/** Pieces of one write that are cut small; the rest of the write is one piece. */
const MAX_SMALL_PIECES = 24;
const MAX_SMALL_PIECE_BYTES = 40;

/**
 * The bytes in pieces, in order. Half of the writes stay whole, others are cut once, a few times,
 * or very small. No copies are made.
 */
export function cutAtRandom(bytes: Uint8Array, random: Random): Uint8Array[] {
  const way = random.below(8);
  if (way < 4 || bytes.length < 2) return [bytes];
  if (way === 7) return smallPieces(bytes, random);
  if (way < 6) {
    const at = 1 + random.below(bytes.length - 1);
    return [bytes.subarray(0, at), bytes.subarray(at)];
  }
  const cuts = new Set<number>();
  for (let i = 4; i > 0; i--) cuts.add(1 + random.below(bytes.length - 1));
  const places = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

function smallPieces(bytes: Uint8Array, random: Random): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.length && pieces.length < MAX_SMALL_PIECES) {
    const piece = bytes.subarray(at, at + 1 + random.below(MAX_SMALL_PIECE_BYTES));
    pieces.push(piece);
    at += piece.length;
  }
  if (at < bytes.length) pieces.push(bytes.subarray(at));
  return pieces;
}
