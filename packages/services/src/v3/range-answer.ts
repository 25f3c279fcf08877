/**
 * The answers of ranges and of transactions that read, encoded while the records are found: in
 * blocks of up to 64 KiB, with the larger records between them as they are, so that no step copies
 * a whole answer.
 */
import {
  alloc,
  EMPTY,
  MAX_PREFIX_BYTES,
  prefix,
  RangeResponse,
  RESPONSE_RANGE_TAG,
  RESPONSES_TAG,
  type ResponseHeader,
  TxnResponse,
  toLatin1,
  writePrefix,
} from "@quorate/proto";
import { joinMessage, messageSize, type PieceSource, type UnaryResponse } from "@quorate/rpc";
import type { RangeSummary, ReadTxnAnswer, RecordSink } from "@quorate/store";

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

/** Stands before a piece that is sent as it is, in a list of records. */
const AS_IT_IS: Uint8Array = new Uint8Array(0);
const NO_PIECES: Uint8Array[] = [];

/**
 * The records of a response, and blocks of encoded ones among them, in lists of one size: a single
 * list would be copied again and again while it grows, and leave its copies to the collector.
 */
class RecordPieces implements PieceSource {
  readonly #full: Uint8Array[][] = [];
  #part: Uint8Array[] = new Array<Uint8Array>(PART_PIECES);
  #used = 0;
  sizeBytes = 0;
  /** Tag and length of a record; records of one length follow each other often and share it. */
  #prefix: Uint8Array = EMPTY;
  #prefixedBytes = -1;
  /** Where `next` is: the list, and the place in it. */
  #at = 0;
  #place = 0;
  /** The record whose prefix `next` returned last. */
  #record: Uint8Array | undefined;

  /** Adds a record, whose tag and length are written while it is sent. */
  pushRecord(record: Uint8Array): void {
    const { length } = record;
    if (length !== this.#prefixedBytes) this.#setPrefix(length);
    this.sizeBytes += this.#prefix.length + length;
    this.#push(record);
  }

  /** Adds encoded fields. */
  pushEncoded(piece: Uint8Array): void {
    this.sizeBytes += piece.length;
    this.#push(AS_IT_IS);
    this.#push(piece);
  }

  next(): Uint8Array | undefined {
    const record = this.#record;
    if (record !== undefined) {
      this.#record = undefined;
      return record;
    }
    const piece = this.#take();
    if (piece === undefined) return undefined;
    if (piece === AS_IT_IS) return this.#take();
    this.#record = piece;
    if (piece.length !== this.#prefixedBytes) this.#setPrefix(piece.length);
    return this.#prefix;
  }

  #setPrefix(length: number): void {
    this.#prefix = prefix(KVS_TAG, length);
    this.#prefixedBytes = length;
  }

  #push(piece: Uint8Array): void {
    if (this.#used === PART_PIECES) {
      this.#full.push(this.#part);
      this.#part = new Array<Uint8Array>(PART_PIECES);
      this.#used = 0;
    }
    this.#part[this.#used++] = piece;
  }

  #take(): Uint8Array | undefined {
    if (this.#at === this.#full.length)
      return this.#place < this.#used ? this.#part[this.#place++] : undefined;
    const piece = this.#full[this.#at]?.[this.#place++];
    if (this.#place === PART_PIECES) {
      // What was sent is not kept.
      this.#full[this.#at++] = NO_PIECES;
      this.#place = 0;
    }
    return piece;
  }
}

/** Takes the records of one range and encodes them as the kvs of a RangeResponse. */
export class RangeWriter implements RecordSink {
  readonly #charge: (bytes: number) => void;
  /** Memory that is charged and not used yet. */
  #spareBytes = 0;
  #chargedBytes = 0;
  readonly #pieces = new RecordPieces();
  #block: Uint8Array = EMPTY;
  /** Of the block: where the next piece begins, and where the next byte goes. */
  #start = 0;
  #end = 0;

  /**
   * @param charge called with the memory that the answer takes, some of it in advance; throws where
   * that is too much
   */
  constructor(charge: (bytes: number) => void = () => {}) {
    this.#charge = charge;
  }

  push(record: Uint8Array): void {
    const { length } = record;
    if (length >= MIN_OWN_PIECE_BYTES) {
      this.#reserve(length + PIECE_BYTES);
      if (this.#end > this.#start) this.#endPiece();
      this.#pieces.pushRecord(record);
      return;
    }
    const needed = MAX_PREFIX_BYTES + length;
    if (this.#block.length - this.#end < needed) this.#newBlock(needed);
    const at = writePrefix(this.#block, this.#end, KVS_TAG, length);
    this.#block.set(record, at);
    this.#end = at + length;
  }

  /** The encoded response. Nothing may be pushed afterwards. */
  finish(
    header: ResponseHeader | undefined,
    { more, count }: Pick<RangeSummary, "more" | "count">,
  ): PieceSource {
    this.#endPiece();
    return new JoinedPieces([
      RangeResponse.encode({ header }),
      this.#pieces,
      RangeResponse.encode({ more, count }),
    ]);
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
    if (this.#end > this.#start)
      this.#pieces.pushEncoded(this.#block.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}

/** Pieces and sources of pieces, one after the other. */
class JoinedPieces implements PieceSource {
  readonly sizeBytes: number;
  readonly #parts: readonly (Uint8Array | PieceSource)[];
  #at = 0;

  constructor(parts: readonly (Uint8Array | PieceSource)[]) {
    this.#parts = parts;
    let sizeBytes = 0;
    for (const part of parts)
      sizeBytes += part instanceof Uint8Array ? part.length : part.sizeBytes;
    this.sizeBytes = sizeBytes;
  }

  next(): Uint8Array | undefined {
    for (;;) {
      const part = this.#parts[this.#at];
      if (part === undefined) return undefined;
      const piece = part instanceof Uint8Array ? part : part.next();
      if (piece === part || piece === undefined) this.#at++;
      if (piece !== undefined) return piece;
    }
  }
}

/** A message to be sent: a small one in one piece. */
export function messageOf(response: UnaryResponse): UnaryResponse {
  return messageSize(response) >= MIN_PIECES_BYTES ? response : joinMessage(response);
}

/**
 * The response to a transaction that only reads.
 * @param headerOf returns the header for the transaction, with a revision
 */
export function encodeReadTxn(
  answer: ReadTxnAnswer<RangeWriter>,
  headerOf: (revision: number) => ResponseHeader,
): PieceSource {
  const { revision, succeeded } = answer;
  const parts: (Uint8Array | PieceSource)[] = [
    TxnResponse.encode({ header: headerOf(revision), succeeded }),
  ];
  for (const { summary, records } of answer.ranges) {
    const range = records.finish(
      { clusterId: 0n, memberId: 0n, revision: summary.revision, raftTerm: 0 },
      summary,
    );
    const inner = prefix(RESPONSE_RANGE_TAG, range.sizeBytes);
    parts.push(prefix(RESPONSES_TAG, inner.length + range.sizeBytes), inner, range);
  }
  return new JoinedPieces(parts);
}

/** RangeResponse.count of 1. */
const COUNT_ONE: Uint8Array = Uint8Array.of(0x20, 1);

/** Tag of RangeRequest.key. */
const KEY_TAG = 0x0a;

/** Whether a request has a key and nothing else, and so reads that key as it is now. */
export function isSoleKey(bytes: Uint8Array): boolean {
  const { length } = bytes;
  return length > 2 && length < 0x82 && bytes[0] === KEY_TAG && bytes[1] === length - 2;
}

/** The key of a request that has nothing else; undefined for others, which are to be decoded. */
export function soleKey(bytes: Uint8Array): string | undefined {
  return isSoleKey(bytes) ? toLatin1(bytes, 2) : undefined;
}

/** The responses to reads of one key. */
export class GetAnswers {
  /** Tag and length of the last record: those of one length follow each other often. */
  #prefix: Uint8Array = EMPTY;
  #prefixedBytes = -1;

  /**
   * @param header the field `header` of the response
   * @param record undefined where there is no such key
   */
  of(header: Uint8Array, record: Uint8Array | undefined): UnaryResponse {
    if (record === undefined) return header;
    if (record.length !== this.#prefixedBytes) {
      this.#prefix = prefix(KVS_TAG, record.length);
      this.#prefixedBytes = record.length;
    }
    return [header, this.#prefix, record, COUNT_ONE];
  }
}
