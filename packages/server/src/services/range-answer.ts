/**
 * The answers of ranges and of transactions that read, encoded while the records are found: in blocks of up to 64 KiB, with the larger
 * records between them as they are, so that no step copies a whole answer.
 */
import { alloc, EMPTY, RangeResponse, type ResponseHeader, TxnResponse } from "@quorate/proto";
import type { MessageBytes } from "@quorate/rpc";
import type { RangeSummary, ReadTxnAnswer, RecordSink } from "@quorate/store";

/** Below it, one copy of the answer costs less than many pieces do. */
export const MIN_PIECES_BYTES: number = 32 << 10;
const FIRST_BLOCK_BYTES = 2048;
const MAX_BLOCK_BYTES: number = 64 << 10;
/** A record from this size on is a piece of its own: copying it would cost more than another piece does. */
const MIN_OWN_PIECE_BYTES = 512;
/** What a piece takes in memory beside its bytes, about. */
const PIECE_BYTES = 128;
/** RangeResponse.kvs, ResponseOp.response_range and TxnResponse.responses, each with a length. */
const KVS_TAG = 0x12;
const RESPONSE_RANGE_TAG = 0x0a;
const RESPONSES_TAG = 0x1a;
/** A tag and a length of up to 2^35. */
const MAX_PREFIX_BYTES = 6;

/** Takes the records of one range and encodes them as the kvs of a RangeResponse. */
export class RangeWriter implements RecordSink {
  readonly #charge: (bytes: number) => void;
  readonly #pieces: Uint8Array[] = [];
  #block: Uint8Array = EMPTY;
  /** Of the block: where the next piece begins, and where the next byte goes. */
  #start = 0;
  #end = 0;
  #sizeBytes = 0;
  /** Tag and length of the last record that was a piece of its own. */
  #before: Uint8Array = EMPTY;
  #beforeLength = -1;

  /** @param charge told of each piece of memory that the answer takes; throws where that is too much */
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
    this.#charge(length + PIECE_BYTES);
    // Records of one length follow each other often; they share what goes before them.
    if (length !== this.#beforeLength) {
      this.#before = prefix(KVS_TAG, length);
      this.#beforeLength = length;
    }
    this.#endPiece();
    this.#pieces.push(this.#before, record);
    this.#sizeBytes += this.#before.length + length;
  }

  /** The encoded response, whole or in pieces, and its length. */
  finish(header: ResponseHeader | undefined, { more, count }: Pick<RangeSummary, "more" | "count">): EncodedAnswer {
    this.#endPiece();
    const pieces = [RangeResponse.encode({ header }), ...this.#pieces, RangeResponse.encode({ more, count })];
    return { pieces, sizeBytes: pieces[0].length + this.#sizeBytes + pieces[pieces.length - 1].length };
  }

  #newBlock(needed: number): void {
    this.#endPiece();
    const size = Math.max(needed, Math.min(MAX_BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, 2 * this.#block.length)));
    this.#charge(size);
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

/** The answer to a transaction that only reads. @param headerOf the header for the transaction, with a revision */
export function encodeReadTxn(answer: ReadTxnAnswer<RangeWriter>, headerOf: (revision: number) => ResponseHeader): EncodedAnswer {
  const pieces: Uint8Array[] = [TxnResponse.encode({ header: headerOf(answer.revision), succeeded: answer.succeeded })];
  let sizeBytes = pieces[0].length;
  for (const { summary, records } of answer.ranges) {
    const range = records.finish({ clusterId: 0n, memberId: 0n, revision: summary.revision, raftTerm: 0 }, summary);
    const inner = prefix(RESPONSE_RANGE_TAG, range.sizeBytes);
    const outer = prefix(RESPONSES_TAG, inner.length + range.sizeBytes);
    for (const piece of [outer, inner, ...range.pieces]) pieces.push(piece);
    sizeBytes += outer.length + inner.length + range.sizeBytes;
  }
  return { pieces, sizeBytes };
}

function prefix(tag: number, length: number): Uint8Array {
  const bytes = alloc(MAX_PREFIX_BYTES);
  return bytes.subarray(0, writePrefix(bytes, 0, tag, length));
}

/** Writes a tag of one byte and a length; returns where it ends. */
function writePrefix(bytes: Uint8Array, at: number, tag: number, length: number): number {
  bytes[at++] = tag;
  let rest = length;
  // Not with shifts: the length of a message in a message may be 2^31 and more, which is refused only afterwards.
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes[at++] = (rest % 128) | 0x80;
  bytes[at++] = rest;
  return at;
}
