/**
 * Builds requests: keys as texts or bytes, ranges, comparisons and operations of transactions.
 */
import {
  type Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  fromUtf8,
  PutRequest,
  RangeRequest,
  RangeRequest_SortOrder,
  RangeRequest_SortTarget,
  type RequestOp,
  TxnRequest,
} from "@quorate/proto";

/** Bytes, or a text that is encoded as UTF-8. */
export type Bytes = string | Uint8Array;

function toBytes(value: Bytes): Uint8Array {
  return typeof value === "string" ? fromUtf8(value) : value;
}

const EVERYTHING = new Uint8Array(1);

/**
 * The end of the range of all keys with this prefix: the first key after them, or a zero byte (no
 * end) if there is none.
 */
export function prefixEnd(prefix: Bytes): Uint8Array {
  const end = toBytes(prefix).slice();
  for (let last = end.length - 1; last >= 0; last--) {
    if (end[last] < 0xff) {
      end[last]++;
      return end.slice(0, last + 1);
    }
  }
  return EVERYTHING;
}

/** Extends a key to a range of keys. At most one of these may be set. */
export interface RangeOptions {
  /** All keys that begin with the key. An empty key with `prefix` means every key. */
  readonly prefix?: boolean;
  /** All keys from the key on. */
  readonly fromKey?: boolean;
  /** All keys from the key up to this one, which is not included. */
  readonly rangeEnd?: Bytes;
}

/** Key and range end as requests hold them. Throws TypeError where options exclude each other. */
export function keyRange(
  key: Bytes,
  options: RangeOptions,
): { key: Uint8Array; rangeEnd: Uint8Array } {
  const set = [
    options.prefix === true,
    options.fromKey === true,
    options.rangeEnd !== undefined,
  ].filter(Boolean).length;
  if (set > 1) throw new TypeError("prefix, fromKey and rangeEnd exclude each other");
  const start = toBytes(key);
  if (options.prefix === true)
    return start.length === 0
      ? { key: EVERYTHING, rangeEnd: EVERYTHING }
      : { key: start, rangeEnd: prefixEnd(start) };
  if (options.fromKey === true)
    return { key: start.length === 0 ? EVERYTHING : start, rangeEnd: EVERYTHING };
  return {
    key: start,
    rangeEnd: options.rangeEnd === undefined ? new Uint8Array(0) : toBytes(options.rangeEnd),
  };
}

export interface GetOptions extends RangeOptions {
  /** At most so many keys; 0 for all. */
  readonly limit?: number;
  /** As of this revision; 0 for now. */
  readonly revision?: number;
  readonly sortBy?: "key" | "version" | "create" | "mod" | "value";
  readonly order?: "ascend" | "descend";
  /**
   * Read from one member without a round through the cluster: faster, but possibly stale.
   */
  readonly serializable?: boolean;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
  readonly minModRevision?: number;
  readonly maxModRevision?: number;
  readonly minCreateRevision?: number;
  readonly maxCreateRevision?: number;
}

const sortTargets = {
  key: RangeRequest_SortTarget.KEY,
  version: RangeRequest_SortTarget.VERSION,
  create: RangeRequest_SortTarget.CREATE,
  mod: RangeRequest_SortTarget.MOD,
  value: RangeRequest_SortTarget.VALUE,
};
const sortOrders = {
  ascend: RangeRequest_SortOrder.ASCEND,
  descend: RangeRequest_SortOrder.DESCEND,
};

/**
 * A Range request. Without an order, any sort target but the key sorts ascending; the server
 * returns keys sorted anyway.
 */
export function getRequest(key: Bytes, options: GetOptions = {}): RangeRequest {
  const target = sortTargets[options.sortBy ?? "key"];
  let order: number =
    options.order === undefined ? RangeRequest_SortOrder.NONE : sortOrders[options.order];
  if (options.order === undefined && target !== RangeRequest_SortTarget.KEY)
    order = RangeRequest_SortOrder.ASCEND;
  if (order === RangeRequest_SortOrder.ASCEND && target === RangeRequest_SortTarget.KEY)
    order = RangeRequest_SortOrder.NONE;
  return RangeRequest.create({
    ...keyRange(key, options),
    limit: options.limit ?? 0,
    revision: options.revision ?? 0,
    sortOrder: order,
    sortTarget: target,
    serializable: options.serializable ?? false,
    keysOnly: options.keysOnly ?? false,
    countOnly: options.countOnly ?? false,
    minModRevision: options.minModRevision ?? 0,
    maxModRevision: options.maxModRevision ?? 0,
    minCreateRevision: options.minCreateRevision ?? 0,
    maxCreateRevision: options.maxCreateRevision ?? 0,
  });
}

export interface PutOptions {
  /** The lease to attach the key to; 0n for none. */
  readonly lease?: bigint;
  /** Give back what the key held before. */
  readonly prevKv?: boolean;
  /** Keep the present value; the value given must be empty. */
  readonly ignoreValue?: boolean;
  /** Keep the present lease. */
  readonly ignoreLease?: boolean;
}

export function putRequest(key: Bytes, value: Bytes, options: PutOptions = {}): PutRequest {
  return PutRequest.create({
    key: toBytes(key),
    value: toBytes(value),
    lease: options.lease ?? 0n,
    prevKv: options.prevKv ?? false,
    ignoreValue: options.ignoreValue ?? false,
    ignoreLease: options.ignoreLease ?? false,
  });
}

export interface DeleteOptions extends RangeOptions {
  /** Give back what was deleted. */
  readonly prevKv?: boolean;
}

export function deleteRequest(key: Bytes, options: DeleteOptions = {}): DeleteRangeRequest {
  return DeleteRangeRequest.create({ ...keyRange(key, options), prevKv: options.prevKv ?? false });
}

/** How a comparison relates what is stored to what is given. */
export type Comparison = "=" | "!=" | "<" | ">";

const results: Readonly<Record<Comparison, number>> = {
  "=": Compare_CompareResult.EQUAL,
  "!=": Compare_CompareResult.NOT_EQUAL,
  "<": Compare_CompareResult.LESS,
  ">": Compare_CompareResult.GREATER,
};

function compare(
  key: Bytes,
  comparison: Comparison,
  target: number,
  targetUnion: Compare["targetUnion"],
  options: RangeOptions,
): Compare {
  return { result: results[comparison], target, targetUnion, ...keyRange(key, options) };
}

/** How often the key was changed since it was created; 0 for a key that is not there. */
export function compareVersion(
  key: Bytes,
  comparison: Comparison,
  version: number,
  options: RangeOptions = {},
): Compare {
  return compare(
    key,
    comparison,
    Compare_CompareTarget.VERSION,
    { case: "version", value: version },
    options,
  );
}

/** The revision that created the key; 0 for a key that is not there. */
export function compareCreateRevision(
  key: Bytes,
  comparison: Comparison,
  revision: number,
  options: RangeOptions = {},
): Compare {
  return compare(
    key,
    comparison,
    Compare_CompareTarget.CREATE,
    { case: "createRevision", value: revision },
    options,
  );
}

/** The revision that changed the key last; 0 for a key that is not there. */
export function compareModRevision(
  key: Bytes,
  comparison: Comparison,
  revision: number,
  options: RangeOptions = {},
): Compare {
  return compare(
    key,
    comparison,
    Compare_CompareTarget.MOD,
    { case: "modRevision", value: revision },
    options,
  );
}

export function compareValue(
  key: Bytes,
  comparison: Comparison,
  value: Bytes,
  options: RangeOptions = {},
): Compare {
  return compare(
    key,
    comparison,
    Compare_CompareTarget.VALUE,
    { case: "value", value: toBytes(value) },
    options,
  );
}

/** The lease that the key is attached to; 0n for none. */
export function compareLease(
  key: Bytes,
  comparison: Comparison,
  lease: bigint,
  options: RangeOptions = {},
): Compare {
  return compare(
    key,
    comparison,
    Compare_CompareTarget.LEASE,
    { case: "lease", value: lease },
    options,
  );
}

export function opGet(key: Bytes, options: GetOptions = {}): RequestOp {
  return { request: { case: "requestRange", value: getRequest(key, options) } };
}

export function opPut(key: Bytes, value: Bytes, options: PutOptions = {}): RequestOp {
  return { request: { case: "requestPut", value: putRequest(key, value, options) } };
}

export function opDelete(key: Bytes, options: DeleteOptions = {}): RequestOp {
  return { request: { case: "requestDeleteRange", value: deleteRequest(key, options) } };
}

/** A transaction inside another. */
export function opTxn(parts: TxnParts): RequestOp {
  return { request: { case: "requestTxn", value: txnRequest(parts) } };
}

/** A transaction: if all of `compare` hold, `success` runs, else `failure`. */
export interface TxnParts {
  readonly compare?: readonly Compare[];
  readonly success?: readonly RequestOp[];
  readonly failure?: readonly RequestOp[];
}

export function txnRequest(parts: TxnParts): TxnRequest {
  return TxnRequest.create({
    compare: [...(parts.compare ?? [])],
    success: [...(parts.success ?? [])],
    failure: [...(parts.failure ?? [])],
  });
}

/** Whether a transaction, with those inside it, only reads. */
export function readsOnly(request: TxnRequest): boolean {
  return [...request.success, ...request.failure].every(
    ({ request: op }) =>
      op === undefined ||
      op.case === "requestRange" ||
      (op.case === "requestTxn" && readsOnly(op.value)),
  );
}
