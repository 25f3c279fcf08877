/**
 * The model's requests and answers as etcd's messages, and back. Keys and values of the simulator
 * are latin1.
 */
import {
  type Compare,
  Compare_CompareResult as CompareResult,
  Compare_CompareTarget as CompareTarget,
  DeleteRangeRequest,
  DeleteRangeResponse,
  defined,
  EMPTY,
  fromLatin1,
  type InternalRaftRequest,
  KeyValue,
  KVService,
  LeaseRevokeRequest,
  LeaseRevokeResponse,
  LeaseService,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeResponse,
  type RequestOp,
  type ResponseOp,
  RangeRequest_SortOrder as SortOrder,
  RangeRequest_SortTarget as SortTarget,
  TxnRequest,
  TxnResponse,
  toLatin1,
} from "@quorate/proto";
import type {
  Answer,
  ModelCompare,
  ModelDelete,
  ModelKv,
  ModelOp,
  ModelPut,
  ModelRequest,
  ModelTxn,
  OpAnswer,
} from "./model.ts";

const { Range, Put, DeleteRange, Txn } = KVService.methods;

const TARGETS = {
  mod: CompareTarget.MOD,
  create: CompareTarget.CREATE,
  version: CompareTarget.VERSION,
  value: CompareTarget.VALUE,
  lease: CompareTarget.LEASE,
} as const;
const RESULTS = {
  "=": CompareResult.EQUAL,
  ">": CompareResult.GREATER,
  "<": CompareResult.LESS,
  "!=": CompareResult.NOT_EQUAL,
} as const;
const FIELDS = { mod: "modRevision", create: "createRevision", version: "version" } as const;

/** How a read is to be done. */
export interface ReadMode {
  readonly serializable: boolean;
  /** 0 for the newest. */
  readonly atRevision: number;
}

function toCompare({ key, end = "", target, result, operand }: ModelCompare): Compare {
  const common = {
    result: RESULTS[result],
    target: TARGETS[target],
    key: fromLatin1(key),
    rangeEnd: fromLatin1(end),
  };
  if (target === "value")
    return { ...common, targetUnion: { case: "value", value: fromLatin1(operand as string) } };
  if (target === "lease")
    return { ...common, targetUnion: { case: "lease", value: BigInt(operand) } };
  return { ...common, targetUnion: { case: FIELDS[target], value: operand as number } };
}

function toPut({
  key,
  value,
  lease,
  ignoreValue = false,
  ignoreLease = false,
  prevKv = false,
}: ModelPut): PutRequest {
  return PutRequest.create({
    key: fromLatin1(key),
    lease: BigInt(lease ?? 0),
    ignoreValue,
    ignoreLease,
    prevKv,
    value: ignoreValue ? EMPTY : fromLatin1(value),
  });
}

function fromPut({ key, value, lease, ignoreValue, ignoreLease, prevKv }: PutRequest): ModelPut {
  const ignored = { ...(ignoreValue && { ignoreValue }), ...(ignoreLease && { ignoreLease }) };
  return {
    kind: "put",
    key: toLatin1(key),
    value: toLatin1(value),
    ...(lease !== 0n && { lease: `${lease}` }),
    ...ignored,
    ...(prevKv && { prevKv }),
  };
}

function toDelete({ key, end, prevKv = false }: ModelDelete): DeleteRangeRequest {
  return { key: fromLatin1(key), rangeEnd: fromLatin1(end), prevKv };
}

function fromDelete({ key, rangeEnd, prevKv }: DeleteRangeRequest): ModelDelete {
  const range = { key: toLatin1(key), end: toLatin1(rangeEnd) };
  return { kind: "delete", ...range, ...(prevKv && { prevKv }) };
}

function toTxn({ compares, success, failure }: ModelTxn): TxnRequest {
  return {
    compare: compares.map(toCompare),
    success: success.map(toOp),
    failure: failure.map(toOp),
  };
}

function fromTxn({ compare, success, failure }: TxnRequest): ModelTxn {
  return {
    kind: "txn",
    compares: compare.map(fromCompare),
    success: success.map(fromOp),
    failure: failure.map(fromOp),
  };
}

function toOp(op: ModelOp): RequestOp {
  if (op.kind === "put") return { request: { case: "requestPut", value: toPut(op) } };
  if (op.kind === "txn") return { request: { case: "requestTxn", value: toTxn(op) } };
  if (op.kind === "range") return { request: { case: "requestRange", value: toRange(op) } };
  return { request: { case: "requestDeleteRange", value: toDelete(op) } };
}

/** The method and the bytes of a request. */
export function encodeRequest(
  request: ModelRequest,
  mode: ReadMode,
): { path: string; bytes: Uint8Array } {
  switch (request.kind) {
    case "put":
      return { path: Put.path, bytes: PutRequest.encode(toPut(request)) };
    case "delete":
      return {
        path: DeleteRange.path,
        bytes: DeleteRangeRequest.encode(toDelete(request)),
      };
    case "range":
      return {
        path: Range.path,
        bytes: RangeRequest.encode({
          ...toRange(request),
          revision: mode.atRevision,
          serializable: mode.serializable,
        }),
      };
    case "revoke":
      return {
        path: LeaseService.methods.LeaseRevoke.path,
        bytes: LeaseRevokeRequest.encode({ ID: BigInt(request.lease) }),
      };
    case "txn":
      return {
        path: Txn.path,
        bytes: TxnRequest.encode(toTxn(request)),
      };
  }
}

/** An encoded mvccpb.KeyValue as the model has it. */
export function toModelKv(bytes: Uint8Array): ModelKv {
  const { key, value, createRevision, modRevision, version, lease } = KeyValue.decode(bytes);
  const kv = {
    key: toLatin1(key),
    value: toLatin1(value),
    create: createRevision,
    mod: modRevision,
    version,
  };
  return lease === 0n ? kv : { ...kv, lease: `${lease}` };
}

function rangeAnswer({ kvs, count, more }: RangeResponse): OpAnswer {
  return { kind: "range", kvs: kvs.map(toModelKv), count, more };
}

/** The answer in a response to a put. */
export function putAnswer({ prevKv }: Pick<PutResponse, "prevKv">): OpAnswer {
  return prevKv === undefined ? { kind: "put" } : { kind: "put", previous: toModelKv(prevKv) };
}

/** The answer in a response to a deletion. */
export function deleteAnswer({
  deleted,
  prevKvs,
}: Pick<DeleteRangeResponse, "deleted" | "prevKvs">): OpAnswer {
  const answer = { kind: "delete", deleted } as const;
  return prevKvs.length === 0 ? answer : { ...answer, previous: prevKvs.map(toModelKv) };
}

function opAnswer({ response }: ResponseOp): OpAnswer {
  switch (response?.case) {
    case "responseRange":
      return rangeAnswer(response.value);
    case "responseTxn":
      return {
        kind: "txn",
        succeeded: response.value.succeeded,
        answers: response.value.responses.map(opAnswer),
      };
    case "responseDeleteRange":
      return deleteAnswer(response.value);
    case "responsePut":
      return putAnswer(response.value);
    default:
      return { kind: "put" };
  }
}

/** The answer to a request of that kind. */
export function decodeAnswer(kind: ModelRequest["kind"], bytes: Uint8Array): Answer {
  switch (kind) {
    case "put": {
      const response = PutResponse.decode(bytes);
      return {
        revision: defined(response.header, "the header").revision,
        succeeded: true,
        answers: [putAnswer(response)],
      };
    }
    case "delete": {
      const response = DeleteRangeResponse.decode(bytes);
      return {
        revision: defined(response.header, "the header").revision,
        succeeded: true,
        answers: [deleteAnswer(response)],
      };
    }
    case "range": {
      const response = RangeResponse.decode(bytes);
      return {
        revision: defined(response.header, "the header").revision,
        succeeded: true,
        answers: [rangeAnswer(response)],
      };
    }
    case "revoke":
      return {
        revision: defined(LeaseRevokeResponse.decode(bytes).header, "the header").revision,
        succeeded: true,
        answers: [{ kind: "revoke" }],
      };
    case "txn":
      return txnAnswer(TxnResponse.decode(bytes));
  }
}

/** The answer in a TxnResponse. */
export function txnAnswer({ header, succeeded, responses }: TxnResponse): Answer {
  return {
    revision: defined(header, "the header").revision,
    succeeded,
    answers: responses.map(opAnswer),
  };
}

const RESULT_NAMES = ["=", ">", "<", "!="] as const;

/** Its fields come in the order in which clients write them: texts of requests are compared. */
function fromCompare({ key, rangeEnd, result, targetUnion }: Compare): ModelCompare {
  const { target, operand } = sideOf(targetUnion);
  return {
    key: toLatin1(key),
    ...(rangeEnd.length > 0 && { end: toLatin1(rangeEnd) }),
    target,
    result: RESULT_NAMES[result],
    operand,
  };
}

function sideOf(side: Compare["targetUnion"]): Pick<ModelCompare, "target" | "operand"> {
  switch (side?.case) {
    case "value":
      return { target: "value", operand: toLatin1(side.value) };
    case "modRevision":
      return { target: "mod", operand: side.value };
    case "createRevision":
      return { target: "create", operand: side.value };
    case "version":
      return { target: "version", operand: side.value };
    case "lease":
      return { target: "lease", operand: `${side.value}` };
    default:
      throw new Error("a comparison that no client of the simulator makes");
  }
}

function fromOp({ request }: RequestOp): ModelOp {
  switch (request?.case) {
    case "requestPut":
      return fromPut(request.value);
    case "requestDeleteRange":
      return fromDelete(request.value);
    case "requestRange":
      return fromRange(request.value);
    case "requestTxn":
      return fromTxn(request.value);
    default:
      throw new Error("an operation that no client of the simulator makes");
  }
}

/** The request in an entry, as the model has it; undefined for entries that change no keys. */
export function requestOfEntry(entry: InternalRaftRequest): ModelRequest | undefined {
  if (entry.put !== undefined) {
    return fromPut(PutRequest.decode(entry.put));
  }
  if (entry.deleteRange !== undefined) {
    return fromDelete(DeleteRangeRequest.decode(entry.deleteRange));
  }
  if (entry.txn !== undefined) {
    return fromTxn(TxnRequest.decode(entry.txn));
  }
  if (entry.leaseRevoke !== undefined)
    return { kind: "revoke", lease: `${LeaseRevokeRequest.decode(entry.leaseRevoke).ID}` };
  return undefined;
}

type ModelRead = Extract<ModelOp, { kind: "range" }>;

const SORTS = {
  key: SortTarget.KEY,
  version: SortTarget.VERSION,
  create: SortTarget.CREATE,
  mod: SortTarget.MOD,
  value: SortTarget.VALUE,
} as const;
const SORT_NAMES = ["key", "version", "create", "mod", "value"] as const;

/** The model's reads as RangeRequests, and back. */
function toRange(read: ModelRead): RangeRequest {
  const { key, end, limit = 0, sortBy, descending, keysOnly = false, countOnly = false } = read;
  return RangeRequest.create({
    key: fromLatin1(key),
    rangeEnd: fromLatin1(end),
    limit,
    keysOnly,
    countOnly,
    sortTarget: SORTS[sortBy ?? "key"],
    sortOrder:
      descending === undefined ? SortOrder.NONE : descending ? SortOrder.DESCEND : SortOrder.ASCEND,
    minModRevision: read.minMod ?? 0,
    maxModRevision: read.maxMod ?? 0,
    minCreateRevision: read.minCreate ?? 0,
    maxCreateRevision: read.maxCreate ?? 0,
  });
}

/** Its fields come in the order in which clients write them: texts of requests are compared. */
function fromRange(request: RangeRequest): ModelRead {
  const { key, rangeEnd, limit, sortTarget, sortOrder, keysOnly, countOnly } = request;
  const { minModRevision, maxModRevision, minCreateRevision, maxCreateRevision } = request;
  const isOrdered = sortOrder !== SortOrder.NONE;
  return {
    kind: "range",
    key: toLatin1(key),
    end: toLatin1(rangeEnd),
    ...(limit > 0 && { limit }),
    ...((isOrdered || sortTarget !== SortTarget.KEY) && { sortBy: SORT_NAMES[sortTarget] }),
    ...(isOrdered && { descending: sortOrder === SortOrder.DESCEND }),
    ...(minModRevision > 0 && { minMod: minModRevision }),
    ...(maxModRevision > 0 && { maxMod: maxModRevision }),
    ...(minCreateRevision > 0 && { minCreate: minCreateRevision }),
    ...(maxCreateRevision > 0 && { maxCreate: maxCreateRevision }),
    ...(keysOnly && { keysOnly }),
    ...(countOnly && { countOnly }),
  };
}
