/**
 * Bounds the work of a request before it is proposed. etcd has no such bounds. Work that is
 * proportional to the size of the request needs none, and requests that touch many keys are applied
 * in steps rather than refused: only memory and time without other bounds are limited.
 */
import {
  type Compare,
  Compare_CompareTarget,
  type DeleteRangeRequest,
  EtcdError,
  errorOf,
  type PutRequest,
  type RangeRequest,
  type RequestOp,
  type TxnRequest,
  toLatin1,
} from "@quorate/proto";
import type { Steps } from "../backend/steps.ts";
import { type KeyRange, keyRange, type ReadView } from "../mvcc/index.ts";

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
  return Math.max(copiedByList(view, success), copiedByList(view, failure));
}

function copiedByList(view: ReadView, ops: readonly RequestOp[]): number {
  let bytes = 0;
  for (const { request: op } of ops) {
    if (op?.case === "requestPut") bytes += copiedByPut(view, op.value);
    else if (op?.case === "requestTxn") bytes += copiedByTxn(view, op.value);
  }
  return bytes;
}

/**
 * Maximum records that the comparisons of one transaction read when it is applied. Every later
 * write waits for them, some 7 microseconds a record.
 */
export const MAX_COMPARED_RECORDS = 8192;

/** True if the request may read the records of many keys when it is applied: `checkWork` is due. */
export function mayReadMuch(request: DeleteRangeRequest | TxnRequest): boolean {
  if (!("success" in request)) return request.prevKv && request.rangeEnd.length > 0;
  if (request.compare.some(comparesRecords)) return true;
  for (const ops of [request.success, request.failure]) {
    for (const { request: op } of ops) {
      if (op?.case === "requestTxn" && mayReadMuch(op.value)) return true;
      if (op?.case === "requestDeleteRange" && mayReadMuch(op.value)) return true;
      if (op?.case === "requestRange" && op.value.rangeEnd.length > 0 && !op.value.countOnly)
        return true;
    }
  }
  return false;
}

/** True for a comparison over a range whose fields are not all in the index. */
function comparesRecords({ rangeEnd, target }: Compare): boolean {
  const { VALUE, LEASE } = Compare_CompareTarget;
  return rangeEnd.length > 0 && (target === VALUE || target === LEASE);
}

/** What a request may read when it is applied. */
export interface WorkLimits {
  /** Bytes of records in its response. */
  readonly answerBytes: number;
  /** Records that its comparisons read. */
  readonly comparedRecords: number;
}

const WORK_LIMITS: WorkLimits = {
  answerBytes: MAX_WRITE_ANSWER_BYTES,
  comparedRecords: MAX_COMPARED_RECORDS,
};

/**
 * Computes what a request that writes reads when it is applied, in the current state: the bytes of
 * records in its response, and the records that its comparisons read. Reads no keys and values.
 * @throws EtcdError RequestTooLarge, with the limit
 */
export function* checkWork(
  view: ReadView,
  request: DeleteRangeRequest | TxnRequest,
  { answerBytes: maxBytes, comparedRecords }: WorkLimits = WORK_LIMITS,
): Steps<void> {
  const sum: Sum = { view, maxBytes, at: view.revision };
  if ("success" in request)
    yield* checkCompared(sum, request, { most: comparedRecords, left: comparedRecords });
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

/** The records that comparisons may still read, of `most`. */
interface Comparisons {
  readonly most: number;
  left: number;
}

/**
 * Checks the comparisons of a transaction and of those in it. Which of these are evaluated is known
 * when it is applied, so all count.
 */
function* checkCompared(sum: Sum, request: TxnRequest, records: Comparisons): Steps<void> {
  for (const one of request.compare) {
    yield;
    if (comparesRecords(one)) records.left -= yield* comparedRecords(sum, one, records.left);
    if (records.left >= 0) continue;
    throw new EtcdError(
      "RequestTooLarge",
      `${errorOf("RequestTooLarge").message}: its comparisons would read more than ${records.most} records; ` +
        "compare fewer keys, or in parts",
    );
  }
  for (const { request: op } of [...request.success, ...request.failure])
    if (op?.case === "requestTxn") yield* checkCompared(sum, op.value, records);
}

/** The records that a comparison of a range reads; counting ends above `most`. */
function* comparedRecords({ view, at }: Sum, one: Compare, most: number): Steps<number> {
  let count = 0;
  yield* view.each(keyRange(one.key, one.rangeEnd), at, (_key, index) => {
    if (one.target === Compare_CompareTarget.VALUE || index.leased) count++;
    return count <= most;
  });
  return count;
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
