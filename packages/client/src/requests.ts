/**
 * Builds requests: keys as texts or bytes, ranges, comparisons and operations of transactions.
 */
import {
  BYTES,
  check,
  checkOptions,
  FLAG,
  ID,
  INTEGER,
  type Kind,
  oneOf,
  type Shape,
} from "@quorate/host";
import {
  type Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  endOfPrefix,
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

/**
 * Bytes as requests hold them. Throws TypeError for anything else: it would be stored as nothing.
 * @param call the call's name, as in "put"
 * @param name the parameter's
 */
export function toBytes(call: string, name: string, value: Bytes): Uint8Array {
  if (typeof value === "string") return fromUtf8(value);
  check(call, name, value, BYTES);
  return value;
}

const NO_BYTES = new Uint8Array(0);
const EVERYTHING = new Uint8Array(1);

/**
 * The end of the range of all keys with this prefix: the first key after them, or a zero byte (no
 * end) if there is none.
 */
export function prefixEnd(prefix: Bytes): Uint8Array {
  return endOfPrefix(toBytes("prefixEnd", "prefix", prefix));
}

/** Extends a key to a range of keys. At most one of these may be set. */
export interface RangeOptions {
  /** All keys that begin with the key. An empty key with `prefix` means every key. */
  readonly prefix?: boolean;
  /** All keys from the key on. */
  readonly fromKey?: boolean;
  /** All keys from the key up to this one, which is not included. */
  readonly rangeEnd?: Bytes | undefined;
}

/** The options of a range, for checkOptions. */
export const RANGE_SHAPE: Shape<RangeOptions> = { prefix: FLAG, fromKey: FLAG, rangeEnd: BYTES };

/** Key and range end as requests hold them. Throws TypeError where options exclude each other. */
export function keyRange(
  call: string,
  key: Bytes,
  options: RangeOptions,
): { key: Uint8Array; rangeEnd: Uint8Array } {
  const set = [
    options.prefix === true,
    options.fromKey === true,
    options.rangeEnd !== undefined,
  ].filter(Boolean).length;
  if (set > 1) throw new TypeError(`${call}: prefix, fromKey and rangeEnd exclude each other`);
  const start = toBytes(call, "key", key);
  if (options.prefix === true)
    return start.length === 0
      ? { key: EVERYTHING, rangeEnd: EVERYTHING }
      : { key: start, rangeEnd: prefixEnd(start) };
  if (options.fromKey === true)
    return { key: start.length === 0 ? EVERYTHING : start, rangeEnd: EVERYTHING };
  return {
    key: start,
    rangeEnd:
      options.rangeEnd === undefined ? NO_BYTES : toBytes(call, "rangeEnd", options.rangeEnd),
  };
}

/** Which keys a read takes, at which revision, and in which order. */
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

/** The options of a get, for checkOptions. */
export const GET_SHAPE: Shape<GetOptions> = {
  ...RANGE_SHAPE,
  limit: INTEGER,
  revision: INTEGER,
  sortBy: oneOf(Object.keys(sortTargets)),
  order: oneOf(Object.keys(sortOrders)),
  serializable: FLAG,
  keysOnly: FLAG,
  countOnly: FLAG,
  minModRevision: INTEGER,
  maxModRevision: INTEGER,
  minCreateRevision: INTEGER,
  maxCreateRevision: INTEGER,
};

/**
 * A Range request. Throws TypeError for a wrong key or option. Without an order, any sort target
 * but the key sorts ascending; the server
 * returns keys sorted anyway.
 */
export function getRequest(key: Bytes, options: GetOptions = {}): RangeRequest {
  checkOptions("get", options, GET_SHAPE);
  const target = sortTargets[options.sortBy ?? "key"];
  let order: number =
    options.order === undefined ? RangeRequest_SortOrder.NONE : sortOrders[options.order];
  if (options.order === undefined && target !== RangeRequest_SortTarget.KEY)
    order = RangeRequest_SortOrder.ASCEND;
  if (order === RangeRequest_SortOrder.ASCEND && target === RangeRequest_SortTarget.KEY)
    order = RangeRequest_SortOrder.NONE;
  return RangeRequest.create({
    ...keyRange("get", key, options),
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

/** What a put attaches, keeps and returns. */
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

/** The options of a put, for checkOptions. */
export const PUT_SHAPE: Shape<PutOptions> = {
  lease: ID,
  prevKv: FLAG,
  ignoreValue: FLAG,
  ignoreLease: FLAG,
};

/** A Put request. Throws TypeError for a wrong key, value or option. */
export function putRequest(key: Bytes, value: Bytes, options: PutOptions = {}): PutRequest {
  checkOptions("put", options, PUT_SHAPE);
  return PutRequest.create({
    key: toBytes("put", "key", key),
    value: toBytes("put", "value", value),
    lease: options.lease ?? 0n,
    prevKv: options.prevKv ?? false,
    ignoreValue: options.ignoreValue ?? false,
    ignoreLease: options.ignoreLease ?? false,
  });
}

/** Which keys a deletion takes, and whether it returns them. */
export interface DeleteOptions extends RangeOptions {
  /** Give back what was deleted. */
  readonly prevKv?: boolean;
}

/** The options of a delete, for checkOptions. */
export const DELETE_SHAPE: Shape<DeleteOptions> = { ...RANGE_SHAPE, prevKv: FLAG };

/** A DeleteRange request. Throws TypeError for a wrong key or option. */
export function deleteRequest(key: Bytes, options: DeleteOptions = {}): DeleteRangeRequest {
  checkOptions("delete", options, DELETE_SHAPE);
  return DeleteRangeRequest.create({
    ...keyRange("delete", key, options),
    prevKv: options.prevKv ?? false,
  });
}

/** How a comparison relates what is stored to what is given. */
export type Comparison = "=" | "!=" | "<" | ">";

const results: Readonly<Record<Comparison, number>> = {
  "=": Compare_CompareResult.EQUAL,
  "!=": Compare_CompareResult.NOT_EQUAL,
  "<": Compare_CompareResult.LESS,
  ">": Compare_CompareResult.GREATER,
};

const COMPARISON = oneOf(Object.keys(results));

function compare(
  call: string,
  key: Bytes,
  comparison: Comparison,
  target: keyof typeof Compare_CompareTarget,
  targetUnion: Compare["targetUnion"],
  options: RangeOptions = {},
): Compare {
  check(call, "comparison", comparison, COMPARISON);
  checkOptions(call, options, RANGE_SHAPE);
  const [result, code] = [results[comparison], Compare_CompareTarget[target]];
  return { result, target: code, targetUnion, ...keyRange(call, key, options) };
}

/** How often the key was changed since it was created; 0 for a key that is not there. */
export function compareVersion(
  key: Bytes,
  comparison: Comparison,
  version: number,
  options?: RangeOptions,
): Compare {
  check("compareVersion", "version", version, INTEGER);
  const wanted = { case: "version", value: version } as const;
  return compare("compareVersion", key, comparison, "VERSION", wanted, options);
}

/** The revision that created the key; 0 for a key that is not there. */
export function compareCreateRevision(
  key: Bytes,
  comparison: Comparison,
  revision: number,
  options?: RangeOptions,
): Compare {
  check("compareCreateRevision", "revision", revision, INTEGER);
  const wanted = { case: "createRevision", value: revision } as const;
  return compare("compareCreateRevision", key, comparison, "CREATE", wanted, options);
}

/** The revision that changed the key last; 0 for a key that is not there. */
export function compareModRevision(
  key: Bytes,
  comparison: Comparison,
  revision: number,
  options?: RangeOptions,
): Compare {
  check("compareModRevision", "revision", revision, INTEGER);
  const wanted = { case: "modRevision", value: revision } as const;
  return compare("compareModRevision", key, comparison, "MOD", wanted, options);
}

/** Holds if the value of a key compares so, byte by byte, to this one. */
export function compareValue(
  key: Bytes,
  comparison: Comparison,
  value: Bytes,
  options?: RangeOptions,
): Compare {
  const wanted = { case: "value", value: toBytes("compareValue", "value", value) } as const;
  return compare("compareValue", key, comparison, "VALUE", wanted, options);
}

/** The lease that the key is attached to; 0n for none. */
export function compareLease(
  key: Bytes,
  comparison: Comparison,
  lease: bigint,
  options?: RangeOptions,
): Compare {
  check("compareLease", "lease", lease, ID);
  const wanted = { case: "lease", value: lease } as const;
  return compare("compareLease", key, comparison, "LEASE", wanted, options);
}

/** One kind of operation, so that a transaction's result has the types of its operations. */
type Op<Case extends NonNullable<RequestOp["request"]>["case"]> = {
  readonly request: Extract<NonNullable<RequestOp["request"]>, { case: Case }>;
};

/** A read in a transaction. */
export function opGet(key: Bytes, options: GetOptions = {}): Op<"requestRange"> {
  return { request: { case: "requestRange", value: getRequest(key, options) } };
}

/** A put in a transaction. */
export function opPut(key: Bytes, value: Bytes, options: PutOptions = {}): Op<"requestPut"> {
  return { request: { case: "requestPut", value: putRequest(key, value, options) } };
}

/** A deletion in a transaction. */
export function opDelete(key: Bytes, options: DeleteOptions = {}): Op<"requestDeleteRange"> {
  return { request: { case: "requestDeleteRange", value: deleteRequest(key, options) } };
}

/** A transaction inside another. */
export function opTxn(parts: TxnParts): Op<"requestTxn"> {
  return { request: { case: "requestTxn", value: txnRequest(parts) } };
}

/** A transaction: if all of `compare` hold, `success` runs, else `failure`. */
export interface TxnParts<
  Success extends readonly RequestOp[] = readonly RequestOp[],
  Failure extends readonly RequestOp[] = readonly RequestOp[],
> {
  readonly compare?: readonly Compare[];
  readonly success?: Success;
  readonly failure?: Failure;
}

const COMPARISONS = listOf("comparisons, such as compareVersion() returns", "targetUnion");
const OPERATIONS = listOf("operations, such as opPut() returns", "request");
const TXN_SHAPE: Shape<TxnParts> = {
  compare: COMPARISONS,
  success: OPERATIONS,
  failure: OPERATIONS,
};

/** @param field what each of the objects has */
function listOf(name: string, field: string): Kind {
  const isOne = (one: unknown) => typeof one === "object" && one !== null && field in one;
  return { name: `an array of ${name}`, is: (value) => Array.isArray(value) && value.every(isOne) };
}

/** A Txn request. Throws TypeError for anything but comparisons and operations. */
export function txnRequest(parts: TxnParts): TxnRequest {
  checkOptions("txn", parts, TXN_SHAPE);
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
