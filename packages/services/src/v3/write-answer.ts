/**
 * The answers of requests that write. Most are small and are encoded at once. One with many records
 * (earlier values of a deleted range, ranges of a transaction) is encoded in steps and in pieces,
 * so that no step copies a whole answer.
 */

import type { SharedTurns, SliceCaller } from "@quorate/member";
import {
  DeleteRangeResponse,
  PutResponse,
  prefix,
  RangeResponse,
  RESPONSE_RANGE_TAG,
  RESPONSES_TAG,
  ResponseOp,
  TxnResponse,
} from "@quorate/proto";
import type { MessageBytes } from "@quorate/rpc";
import type { Steps } from "@quorate/store";

/** An answer with more records is encoded in steps. */
const MAX_RECORDS_AT_ONCE = 256;
/** Bytes of records that one step copies, and one record more. */
const MAX_STEP_BYTES: number = 1 << 20;

/** The fields of ResponseOp. */
const OP_TAGS = {
  responseRange: RESPONSE_RANGE_TAG,
  responsePut: 0x12,
  responseDeleteRange: 0x1a,
  responseTxn: 0x22,
} as const;

/** Where large responses are encoded, and for which client. */
export interface Encoding {
  readonly turns: SharedTurns;
  readonly caller: SliceCaller;
}

/** Encodes an answer: at once if it is small, else over several turns of the event loop. */
export function encodeDeleteRange(
  { turns, caller }: Encoding,
  response: DeleteRangeResponse,
): MessageBytes | Promise<MessageBytes> {
  return response.prevKvs.length <= MAX_RECORDS_AT_ONCE
    ? DeleteRangeResponse.encode(response)
    : turns.run(caller, deleteRangePieces(response));
}

/** As encodeDeleteRange. */
export function encodeTxn(
  { turns, caller }: Encoding,
  response: TxnResponse,
): MessageBytes | Promise<MessageBytes> {
  return recordsIn(response) <= MAX_RECORDS_AT_ONCE
    ? TxnResponse.encode(response)
    : turns.run(caller, txnPieces(response));
}

function recordsIn({ responses }: TxnResponse): number {
  let records = responses.length;
  for (const { response: op } of responses) {
    if (op?.case === "responseRange") records += op.value.kvs.length;
    else if (op?.case === "responseDeleteRange") records += op.value.prevKvs.length;
    else if (op?.case === "responseTxn") records += recordsIn(op.value);
  }
  return records;
}

/** A message may be cut between its fields: what is decoded of all parts together is the whole. */
function* deleteRangePieces({
  header,
  deleted,
  prevKvs,
}: DeleteRangeResponse): Steps<Uint8Array[]> {
  const pieces = [DeleteRangeResponse.encode({ header, deleted })];
  yield* encodeParts(prevKvs, (part) => pieces.push(DeleteRangeResponse.encode({ prevKvs: part })));
  return pieces;
}

function* rangePieces({ header, kvs, more, count }: RangeResponse): Steps<Uint8Array[]> {
  const pieces = [RangeResponse.encode({ header, more, count })];
  yield* encodeParts(kvs, (part) => pieces.push(RangeResponse.encode({ kvs: part })));
  return pieces;
}

function* encodeParts(
  records: readonly Uint8Array[],
  encode: (part: Uint8Array[]) => void,
): Steps<void> {
  for (let start = 0; start < records.length; ) {
    yield;
    const part: Uint8Array[] = [];
    let bytes = 0;
    for (const record of records.slice(start, start + MAX_RECORDS_AT_ONCE)) {
      part.push(record);
      bytes += record.length;
      if (bytes >= MAX_STEP_BYTES) break;
    }
    encode(part);
    start += part.length;
  }
}

function* txnPieces({ header, succeeded, responses }: TxnResponse): Steps<Uint8Array[]> {
  const pieces = [TxnResponse.encode({ header, succeeded })];
  for (const one of responses) {
    yield;
    const { response: op } = one;
    if (op === undefined) {
      const bytes = ResponseOp.encode(one);
      pieces.push(prefix(RESPONSES_TAG, bytes.length), bytes);
      continue;
    }
    let inner: Uint8Array[];
    if (op.case === "responseRange") inner = yield* rangePieces(op.value);
    else if (op.case === "responseDeleteRange") inner = yield* deleteRangePieces(op.value);
    else if (op.case === "responseTxn") inner = yield* txnPieces(op.value);
    else inner = [PutResponse.encode(op.value)];
    let sizeBytes = 0;
    for (const piece of inner) sizeBytes += piece.length;
    const opPrefix = prefix(OP_TAGS[op.case], sizeBytes);
    pieces.push(prefix(RESPONSES_TAG, opPrefix.length + sizeBytes), opPrefix);
    for (const piece of inner) pieces.push(piece);
  }
  return pieces;
}
