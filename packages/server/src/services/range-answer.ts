/**
 * The answers of ranges and of transactions that read, encoded while the records are found: in
 * blocks of up to 64 KiB, with the larger records between them as they are, so that no step copies
 * a whole answer.
 */
import { alloc, EMPTY, RangeResponse, type ResponseHeader, TxnResponse } from "@quorate/proto";
import type { MessageBytes } from "@quorate/rpc";
import type { RangeSummary, ReadTxnAnswer, RecordSink } from "@quorate/store";
import {
  MAX_PREFIX_BYTES,
  prefix,
  RESPONSE_RANGE_TAG,
  RESPONSES_TAG,
  writePrefix,
} from "./field-prefix.ts";

/** Below it, one copy of the answer costs less than many pieces do. */
export const MIN_PIECES_BYTES: number = 32 << 10;
const FIRST_BLOCK_BYTES = 2048;
const MAX_BLOCK_BYTES: number = 64 << 10;
/**
 * A record from this size on is a piece of its own: copying it would cost more than another piece
 * does.
 */
const MIN_OWN_PIECE_BYTES = 512;
/** What a piece takes in memory beside its bytes, about. */
const PIECE_BYTES = 128;
/** Pieces that are kept in one array while an answer grows. */
const PART_PIECES = 512;
/** RangeResponse.kvs. */
const KVS_TAG = 0x12;

/**
 * Pieces in parts of one size: a single array would be copied again and again while it grows, and
 * leave its copies to the collector.
 */
class PieceList {
  readonly #full: Uint8Array[][] = [];
  #part: Uint8Array[] = new Array<Uint8Array>(PART_PIECES);
  #used = 0;

  push(piece: Uint8Array): void {
    if (this.#used === PART_PIECES) {
      this.#full.push(this.#part);
      this.#part = new Array<Uint8Array>(PART_PIECES);
      this.#used = 0;
    }
    this.#part[this.#used++] = piece;
  }

  /** All pieces, with one before and one after them. */
  between(first: Uint8Array, last: Uint8Array): Uint8Array[] {
    const all = new Array<Uint8Array>(this.#full.length * PART_PIECES + this.#used + 2);
    let at = 0;
    all[at++] = first;
    for (const part of this.#full) for (let i = 0; i < PART_PIECES; i++) all[at++] = part[i];
    for (let i = 0; i < this.#used; i++) all[at++] = this.#part[i];
    all[at] = last;
    return all;
  }
}

/** Takes the records of one range and encodes them as the kvs of a RangeResponse. */
export class RangeWriter implements RecordSink {
  readonly #charge: (bytes: number) => void;
  /** Memory that is charged and not used yet. */
  #spareBytes = 0;
  #chargedBytes = 0;
  readonly #pieces = new PieceList();
  #block: Uint8Array = EMPTY;
  /** Of the block: where the next piece begins, and where the next byte goes. */
  #start = 0;
  #end = 0;
  #sizeBytes = 0;
  /** Tag and length of the last record that was a piece of its own. */
  #before: Uint8Array = EMPTY;
  #beforeLength = -1;

  /**
   * @param charge told of the memory that the answer takes, some of it in advance; throws where
   * that is too much
   */
  constructor(charge: (bytes: number) => void = () => {}) {
    this.#charge = charge;
  }

  push(record: Uint8Array): void {
    const { length } = record;
    if (length >= MIN_OWN_PIECE_BYTES) {
      this.#pushPiece(record);
      return;
    }
    const needed = MAX_PREFIX_BYTES + length;
    if (this.#block.length - this.#end < needed) this.#newBlock(needed);
    const from = this.#end;
    const at = writePrefix(this.#block, from, KVS_TAG, length);
    this.#block.set(record, at);
    this.#end = at + length;
    this.#sizeBytes += this.#end - from;
  }

  #pushPiece(record: Uint8Array): void {
    const { length } = record;
    this.#reserve(length + PIECE_BYTES);
    // Records of one length follow each other often; they share what goes before them.
    if (length !== this.#beforeLength) {
      this.#before = prefix(KVS_TAG, length);
      this.#beforeLength = length;
    }
    this.#endPiece();
    this.#pieces.push(this.#before);
    this.#pieces.push(record);
    this.#sizeBytes += this.#before.length + length;
  }

  /** The encoded response in pieces, and its length. Nothing may be pushed afterwards. */
  finish(
    header: ResponseHeader | undefined,
    { more, count }: Pick<RangeSummary, "more" | "count">,
  ): EncodedAnswer {
    this.#endPiece();
    const first = RangeResponse.encode({ header });
    const last = RangeResponse.encode({ more, count });
    return {
      pieces: this.#pieces.between(first, last),
      sizeBytes: first.length + this.#sizeBytes + last.length,
    };
  }

  /** Charges memory: not for each record, but in parts that grow with the answer. */
  #reserve(sizeBytes: number): void {
    if (this.#spareBytes < sizeBytes) {
      const bytes = Math.max(
        sizeBytes - this.#spareBytes,
        Math.min(MAX_BLOCK_BYTES, this.#chargedBytes),
      );
      this.#charge(bytes);
      this.#chargedBytes += bytes;
      this.#spareBytes += bytes;
    }
    this.#spareBytes -= sizeBytes;
  }

  #newBlock(needed: number): void {
    this.#endPiece();
    const size = Math.max(
      needed,
      Math.min(MAX_BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, 2 * this.#block.length)),
    );
    this.#reserve(size);
    this.#block = alloc(size);
    this.#start = 0;
    this.#end = 0;
  }

  #endPiece(): void {
    if (this.#end > this.#start) this.#pieces.push(this.#block.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}

/** An encoded message in pieces. */
export interface EncodedAnswer {
  readonly pieces: readonly Uint8Array[];
  readonly sizeBytes: number;
}

/** A message to be sent: a small one in one piece. */
export function messageOf({ pieces, sizeBytes }: EncodedAnswer): MessageBytes {
  if (sizeBytes >= MIN_PIECES_BYTES) return pieces;
  const bytes = alloc(sizeBytes);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/**
 * The answer to a transaction that only reads. @param headerOf the header for the transaction, with
 * a revision
 */
export function encodeReadTxn(
  answer: ReadTxnAnswer<RangeWriter>,
  headerOf: (revision: number) => ResponseHeader,
): EncodedAnswer {
  const pieces: Uint8Array[] = [
    TxnResponse.encode({ header: headerOf(answer.revision), succeeded: answer.succeeded }),
  ];
  let sizeBytes = pieces[0].length;
  for (const { summary, records } of answer.ranges) {
    const range = records.finish(
      { clusterId: 0n, memberId: 0n, revision: summary.revision, raftTerm: 0 },
      summary,
    );
    const inner = prefix(RESPONSE_RANGE_TAG, range.sizeBytes);
    const outer = prefix(RESPONSES_TAG, inner.length + range.sizeBytes);
    pieces.push(outer, inner);
    for (const piece of range.pieces) pieces.push(piece);
    sizeBytes += outer.length + inner.length + range.sizeBytes;
  }
  return { pieces, sizeBytes };
}
