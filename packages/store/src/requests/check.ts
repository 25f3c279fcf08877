/**
 * What a request is by itself, whatever the state: whether it is valid, checked before it is
 * proposed or read; the bytes that it may add to the store; and what kind of transaction it is.
 * Each check returns the name of the error, undefined for a valid request.
 */
import {
  type DeleteRangeRequest,
  type ErrorName,
  type PutRequest,
  type RangeRequest,
  RangeRequest_SortOrder,
  RangeRequest_SortTarget,
  type RequestOp,
  type TxnRequest,
  toLatin1,
} from "@quorate/proto";

const SORT_ORDERS: ReadonlySet<number> = new Set(Object.values(RangeRequest_SortOrder));
const SORT_TARGETS: ReadonlySet<number> = new Set(Object.values(RangeRequest_SortTarget));

export function checkRange(request: RangeRequest): ErrorName | undefined {
  if (request.key.length === 0) return "EmptyKey";
  if (!SORT_ORDERS.has(request.sortOrder) || !SORT_TARGETS.has(request.sortTarget))
    return "InvalidSortOption";
  return undefined;
}

export function checkPut(request: PutRequest): ErrorName | undefined {
  if (request.key.length === 0) return "EmptyKey";
  if (request.ignoreValue && request.value.length > 0) return "ValueProvided";
  if (request.ignoreLease && request.lease !== 0n) return "LeaseProvided";
  return undefined;
}

export function checkDeleteRange(request: DeleteRangeRequest): ErrorName | undefined {
  return request.key.length === 0 ? "EmptyKey" : undefined;
}

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

/** Bytes of a key besides its name and value. */
const KEY_OVERHEAD_BYTES = 256;
/** Bytes of a lease. */
export const LEASE_COST_BYTES = 64;

/** What a put may add to the store, as the space quota estimates it (etcd: storage/quota.go). */
export function putCostBytes(request: PutRequest): number {
  return KEY_OVERHEAD_BYTES + request.key.length + request.value.length;
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

interface Interval {
  readonly from: string;
  /** Excluded. */
  readonly to: string;
}

/** A set of key intervals with a test for a key. Sorted at the first test after an addition. */
class DeletedKeys {
  #intervals: Interval[] = [];
  #sorted = true;

  /** Adds one key (no rangeEnd), or those from `key` (included) to `rangeEnd` (excluded). */
  add(key: string, rangeEnd: string): void {
    const to = rangeEnd === "" ? `${key}\0` : rangeEnd;
    // Also ignores a range without an upper bound ("\0"), like etcd's check.
    if (to <= key) return;
    this.#intervals.push({ from: key, to });
    this.#sorted = false;
  }

  addAll(other: DeletedKeys): void {
    if (other.#intervals.length === 0) return;
    this.#intervals = this.#intervals.concat(other.#intervals);
    this.#sorted = false;
  }

  /** True if an interval covers the key. */
  has(key: string): boolean {
    if (this.#intervals.length === 0) return false;
    if (!this.#sorted) this.#sort();
    const intervals = this.#intervals;
    let low = 0;
    let high = intervals.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (intervals[middle].from <= key) low = middle + 1;
      else high = middle;
    }
    return low > 0 && key < intervals[low - 1].to;
  }

  /** Sorts the intervals and merges those that overlap. */
  #sort(): void {
    const joined: Interval[] = [];
    for (const next of this.#intervals.sort((a, b) =>
      a.from < b.from ? -1 : a.from > b.from ? 1 : 0,
    )) {
      const last = joined.at(-1);
      if (last === undefined || next.from > last.to) joined.push(next);
      else if (next.to > last.to) joined[joined.length - 1] = { from: last.from, to: next.to };
    }
    this.#intervals = joined;
    this.#sorted = true;
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
