/**
 * A transaction before it is proposed, by itself, whatever the state: decoded within bounds, valid,
 * the bytes that it may add to the store, and what kind of transaction it is. Each check returns
 * the name of the error, undefined for a valid request.
 */
import {
  type ErrorName,
  EtcdError,
  errorOf,
  Reader,
  type RequestOp,
  TxnRequest,
  toLatin1,
  WireError,
} from "@quorate/proto";
import { type Interval, Intervals } from "../mvcc/intervals.ts";
import { checkDeleteRange } from "./delete-range.ts";
import { checkPut, putCostBytes } from "./put.ts";
import { checkRange } from "./range.ts";

/**
 * Checks a transaction and all nested ones. No list may have more than maxTxnOps entries; for
 * nested ones that shrinks by the longest list around them. A key may be changed once on each path
 * through the transaction (see checkDuplicates).
 */
export function checkTxn(request: TxnRequest, maxTxnOps: number): ErrorName | undefined {
  return checkShape(request, maxTxnOps) ?? checkDuplicates(request);
}

function checkShape(request: TxnRequest, maxTxnOps: number): ErrorName | undefined {
  const ops = Math.max(request.compare.length, request.success.length, request.failure.length);
  if (ops > maxTxnOps) return "TooManyOps";
  if (request.compare.some(({ key }) => key.length === 0)) return "EmptyKey";
  return (
    firstError(request.success, maxTxnOps - ops) ?? firstError(request.failure, maxTxnOps - ops)
  );
}

function firstError(ops: readonly RequestOp[], maxTxnOps: number): ErrorName | undefined {
  for (const op of ops) {
    const error = checkOp(op, maxTxnOps);
    if (error !== undefined) return error;
  }
  return undefined;
}

function checkOp({ request: op }: RequestOp, maxTxnOps: number): ErrorName | undefined {
  switch (op?.case) {
    case "requestRange":
      return checkRange(op.value);
    case "requestPut":
      return checkPut(op.value);
    case "requestDeleteRange":
      return checkDeleteRange(op.value);
    case "requestTxn":
      return checkShape(op.value, maxTxnOps);
    default:
      return "KeyNotFound";
  }
}

/** The keys that a list of operations may change. */
interface Changed {
  readonly puts: Set<string>;
  readonly deletes: DeletedKeys;
}

/**
 * No key may be put twice, or put where the same list deletes it. The two branches of a nested
 * transaction may put the same key, since only one of them runs. As in etcd, a delete in a nested
 * transaction conflicts only with the puts of later ones and of the list around it, and a delete
 * without an upper bound ("\0") with none.
 */
function checkDuplicates(request: TxnRequest): ErrorName | undefined {
  return changesEachOnce(request.success) && changesEachOnce(request.failure)
    ? undefined
    : "DuplicateKey";
}

/** Whether a list changes no key twice. */
function changesEachOnce(ops: readonly RequestOp[]): boolean {
  const isOneChange = ops.length < 2 && ops[0]?.request?.case !== "requestTxn";
  return isOneChange || changedBy(ops) !== undefined;
}

/** The keys that a list changes; undefined if it changes a key twice. */
function changedBy(ops: readonly RequestOp[]): Changed | undefined {
  const puts = new Set<string>();
  const deletes = new DeletedKeys();
  for (const { request: op } of ops) {
    if (op?.case === "requestDeleteRange")
      deletes.add(toLatin1(op.value.key), toLatin1(op.value.rangeEnd));
  }
  for (const { request: op } of ops) {
    if (op?.case !== "requestTxn") continue;
    const success = changedBy(op.value.success);
    const failure = success && changedBy(op.value.failure);
    if (success === undefined || failure === undefined) return undefined;
    for (const key of success.puts) if (puts.has(key) || deletes.has(key)) return undefined;
    for (const key of failure.puts) if (puts.has(key) || deletes.has(key)) return undefined;
    for (const key of success.puts) puts.add(key);
    for (const key of failure.puts) puts.add(key);
    deletes.addAll(success.deletes);
    deletes.addAll(failure.deletes);
  }
  for (const { request: op } of ops) {
    if (op?.case !== "requestPut") continue;
    const key = toLatin1(op.value.key);
    if (puts.has(key) || deletes.has(key)) return undefined;
    puts.add(key);
  }
  return { puts, deletes };
}

/** The larger of its two lists, because the comparisons decide only when it is applied. */
export function txnCostBytes(request: TxnRequest): number {
  return Math.max(listCostBytes(request.success), listCostBytes(request.failure));
}

function listCostBytes(ops: readonly RequestOp[]): number {
  let bytes = 0;
  for (const { request: op } of ops) {
    if (op?.case === "requestPut") bytes += putCostBytes(op.value);
    else if (op?.case === "requestTxn") bytes += txnCostBytes(op.value);
  }
  return bytes;
}

/** The keys that deletions cover. */
class DeletedKeys {
  readonly #added: Interval[] = [];
  /** Made at the first question after an addition. */
  #intervals: Intervals | undefined;

  /** Adds one key (no rangeEnd), or those from `key` (included) to `rangeEnd` (excluded). */
  add(key: string, rangeEnd: string): void {
    // A range without an upper bound ("\0") is empty here, as in etcd's check.
    this.#added.push({ begin: key, end: rangeEnd === "" ? `${key}\0` : rangeEnd });
    this.#intervals = undefined;
  }

  addAll(other: DeletedKeys): void {
    if (other.#added.length === 0) return;
    for (const one of other.#added) this.#added.push(one);
    this.#intervals = undefined;
  }

  has(key: string): boolean {
    if (this.#added.length === 0) return false;
    this.#intervals ??= Intervals.of(this.#added);
    return this.#intervals.endAt(key) !== undefined;
  }
}

/**
 * True if all branches contain only ranges, so that it needs no log entry. A nested transaction
 * counts as writing.
 */
export function isReadOnlyTxn(request: TxnRequest): boolean {
  return both(request, ({ request: op }) => op?.case === "requestRange");
}

/** True if all branches contain only serializable ranges, so that it needs no quorum either. */
export function isSerializableTxn(request: TxnRequest): boolean {
  return both(request, ({ request: op }) => op?.case === "requestRange" && op.value.serializable);
}

function both(request: TxnRequest, test: (op: RequestOp) => boolean): boolean {
  return request.success.every(test) && request.failure.every(test);
}

/** Operations, and comparisons, of a transaction that is applied at once. */
const MAX_SHORT_OPS = 16;

/**
 * True for few operations on single keys, none of them nested: applied at once, without steps.
 * @param stepKeys maximum number of keys in one step
 */
export function isShortTxn({ compare, success, failure }: TxnRequest, stepKeys: number): boolean {
  const most = Math.min(MAX_SHORT_OPS, stepKeys);
  if (compare.length > most || success.length > most || failure.length > most) return false;
  for (const { rangeEnd } of compare) if (rangeEnd.length > 0) return false;
  return success.every(isOfOneKey) && failure.every(isOfOneKey);
}

function isOfOneKey({ request: op }: RequestOp): boolean {
  switch (op?.case) {
    case "requestRange":
    case "requestDeleteRange":
      return op.value.rangeEnd.length === 0;
    case "requestTxn":
      return false;
    default:
      return true;
  }
}

/**
 * Maximum number of operations and comparisons of one transaction, with those of nested ones;
 * --max-txn-ops if that is higher. etcd has no such bound.
 */
export const MAX_TXN_OPS_IN_ALL = 10_000;
/** Smaller requests cannot contain so many that counting them first would pay. */
const COUNT_FROM_BYTES = 16 * 1024;

const COMPARE = 1;
const FAILURE = 3;
const REQUEST_TXN = 4;
const LENGTH_DELIMITED = 2;

/**
 * Decodes a transaction after counting its operations. A request of the largest size may contain a
 * million empty operations or comparisons; creating objects for them, only to refuse them, would
 * block the event loop for a tenth of a second and more.
 *
 *     TxnRequest { compare = 1, success = 2, failure = 3 }     RequestOp { request_txn = 4 }
 *
 * @throws WireError for malformed bytes; EtcdError TooManyOps
 */
export function decodeTxn(bytes: Uint8Array, maxTxnOps: number): TxnRequest {
  if (bytes.length >= COUNT_FROM_BYTES) count(bytes, maxTxnOps);
  return TxnRequest.decode(bytes);
}

function count(bytes: Uint8Array, maxTxnOps: number): void {
  try {
    countList(new Reader(bytes), { maxTxnOps, left: Math.max(MAX_TXN_OPS_IN_ALL, maxTxnOps) });
  } catch (error) {
    // The decoder reports the problem and its position.
    if (!(error instanceof WireError)) throw error;
  }
}

/** The remaining allowance. */
interface Budget {
  readonly maxTxnOps: number;
  left: number;
}

function countList(reader: Reader, budget: Budget): void {
  const counts = new Map<number, number>();
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    const field = tag >>> 3;
    if ((tag & 7) !== LENGTH_DELIMITED || field < COMPARE || field > FAILURE) {
      reader.skip(tag, {});
      continue;
    }
    const count = (counts.get(field) ?? 0) + 1;
    counts.set(field, count);
    if (count > budget.maxTxnOps) throw errorOf("TooManyOps");
    if (--budget.left < 0) {
      const most = Math.max(MAX_TXN_OPS_IN_ALL, budget.maxTxnOps);
      throw new EtcdError(
        "TooManyOps",
        `${errorOf("TooManyOps").message}: more than ${most}, those of nested transactions counted too`,
      );
    }
    if (field === COMPARE) reader.skip(tag, {});
    else countOperation(reader, budget);
  }
}

function countOperation(reader: Reader, budget: Budget): void {
  const end = reader.enterNested();
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (tag >>> 3 !== REQUEST_TXN || (tag & 7) !== LENGTH_DELIMITED) {
      reader.skip(tag, {});
      continue;
    }
    const outer = reader.enterNested();
    countList(reader, budget);
    reader.leaveNested(outer);
  }
  reader.leaveNested(end);
}
