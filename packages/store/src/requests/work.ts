/**
 * Bounds the work of a request before it is proposed. etcd has no such bounds. Work that is
 * proportional to the size of the request needs none, and requests that touch many keys are applied
 * in steps rather than refused: only memory and time without other bounds are limited.
 */
import {
  type DeleteRangeRequest,
  EtcdError,
  errorOf,
  type PutRequest,
  type RangeRequest,
  type TxnRequest,
  toLatin1,
} from "@quorate/proto";
import { type KeyRange, keyRange, type ReadView } from "../mvcc/index.ts";
import type { Steps } from "../steps.ts";

/** Bytes of records that the puts of one request with ignore_value copy. */
export const MAX_COPIED_BYTES: number = 64 << 20;
/**
 * Maximum bytes of records in the response to one request that writes: previous values, and ranges
 * of a transaction.
 */
export const MAX_WRITE_ANSWER_BYTES: number = 128 << 20;

/**
 * Bytes of records that puts with ignore_value copy, in the current state. @throws EtcdError
 * RequestTooLarge, with the limit
 */
export function copiedBytes(
  view: ReadView,
  request: PutRequest | TxnRequest,
  maxBytes: number = MAX_COPIED_BYTES,
): number {
  const bytes = "success" in request ? copiedByTxn(view, request) : copiedByPut(view, request);
  if (bytes <= maxBytes) return bytes;
  throw new EtcdError(
    "RequestTooLarge",
    `${errorOf("RequestTooLarge").message}: its puts with ignore_value would copy ${bytes} bytes; at most ${maxBytes} are copied`,
  );
}

function copiedByPut(view: ReadView, { key, ignoreValue }: PutRequest): number {
  const found = ignoreValue ? view.get(toLatin1(key)) : undefined;
  return found === undefined ? 0 : found.index.sizeAt(found.index.find(found.at));
}

/** The larger of its two lists, because the comparisons decide only when it is applied. */
function copiedByTxn(view: ReadView, { success, failure }: TxnRequest): number {
  const sums = [success, failure].map((ops) => {
    let bytes = 0;
    for (const { request: op } of ops) {
      if (op?.case === "requestPut") bytes += copiedByPut(view, op.value);
      else if (op?.case === "requestTxn") bytes += copiedByTxn(view, op.value);
    }
    return bytes;
  });
  return Math.max(...sums);
}

/** True if the response to the request may contain the records of many keys. */
export function mayAnswerMuch(request: DeleteRangeRequest | TxnRequest): boolean {
  if (!("success" in request)) return request.prevKv && request.rangeEnd.length > 0;
  for (const ops of [request.success, request.failure]) {
    for (const { request: op } of ops) {
      if (op?.case === "requestTxn" && mayAnswerMuch(op.value)) return true;
      if (op?.case === "requestDeleteRange" && mayAnswerMuch(op.value)) return true;
      if (op?.case === "requestRange" && op.value.rangeEnd.length > 0 && !op.value.countOnly)
        return true;
    }
  }
  return false;
}

/**
 * Computes the bytes of records in the response to a request that writes, in the current state,
 * without reading keys and values. @throws EtcdError RequestTooLarge, with the limit
 */
export function* checkWriteAnswer(
  view: ReadView,
  request: DeleteRangeRequest | TxnRequest,
  maxBytes: number = MAX_WRITE_ANSWER_BYTES,
): Steps<void> {
  const sum: Sum = { view, maxBytes, at: view.revision };
  const bytes =
    "success" in request
      ? yield* answeredByTxn(sum, request)
      : yield* answeredByDelete(sum, request);
  if (bytes <= maxBytes) return;
  throw new EtcdError(
    "RequestTooLarge",
    `${errorOf("RequestTooLarge").message}: its answer would hold more than ${maxBytes} bytes of earlier values and ranges; ` +
      "ask for less, or in parts",
  );
}

/** The sum of bytes, and the bound above which counting may stop. */
interface Sum {
  readonly view: ReadView;
  readonly at: number;
  readonly maxBytes: number;
}

function* answeredByDelete(sum: Sum, { key, rangeEnd, prevKv }: DeleteRangeRequest): Steps<number> {
  return prevKv ? yield* recordBytes(sum, keyRange(key, rangeEnd), 0) : 0;
}

function* answeredByTxn(sum: Sum, { success, failure }: TxnRequest): Steps<number> {
  let most = 0;
  for (const ops of [success, failure]) {
    let bytes = 0;
    for (const { request: op } of ops) {
      if (bytes > sum.maxBytes) break;
      yield;
      if (op?.case === "requestTxn") bytes += yield* answeredByTxn(sum, op.value);
      else if (op?.case === "requestDeleteRange") bytes += yield* answeredByDelete(sum, op.value);
      else if (op?.case === "requestRange") bytes += yield* answeredByRange(sum, op.value);
    }
    most = Math.max(most, bytes);
  }
  return most;
}

function* answeredByRange(
  sum: Sum,
  { key, rangeEnd, countOnly, limit }: RangeRequest,
): Steps<number> {
  return countOnly ? 0 : yield* recordBytes(sum, keyRange(key, rangeEnd), limit);
}

/**
 * Bytes of the records of a range; with a `limit` other than 0, of that many records of the largest
 * size at most.
 */
function* recordBytes({ view, at, maxBytes }: Sum, range: KeyRange, limit: number): Steps<number> {
  let count = 0;
  let bytes = 0;
  let largest = 0;
  yield* view.each(range, at, (_key, index) => {
    const sizeBytes = index.sizeAt(index.find(at));
    count++;
    bytes += sizeBytes;
    largest = Math.max(largest, sizeBytes);
    return limit > 0 || bytes <= maxBytes;
  });
  return limit > 0 ? Math.min(bytes, Math.min(limit, count) * largest) : bytes;
}
