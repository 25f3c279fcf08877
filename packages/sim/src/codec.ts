/** The model's requests and answers as etcd's messages, and back. Keys and values of the simulator are latin1. */
import {
  type Compare,
  Compare_CompareResult as CompareResult,
  Compare_CompareTarget as CompareTarget,
  DeleteRangeRequest,
  DeleteRangeResponse,
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
  TxnRequest,
  TxnResponse,
  toLatin1,
} from "@quorate/proto";
import type { Answer, ModelCompare, ModelKv, ModelOp, ModelRequest, OpAnswer } from "./model.ts";

const { Range, Put, DeleteRange, Txn } = KVService.methods;

const TARGETS = {
  mod: CompareTarget.MOD,
  create: CompareTarget.CREATE,
  version: CompareTarget.VERSION,
  value: CompareTarget.VALUE,
} as const;
const RESULTS = { "=": CompareResult.EQUAL, ">": CompareResult.GREATER, "<": CompareResult.LESS, "!=": CompareResult.NOT_EQUAL } as const;
const FIELDS = { mod: "modRevision", create: "createRevision", version: "version" } as const;

/** How a read is to be done. */
export interface ReadMode {
  readonly serializable: boolean;
  /** 0 for the newest. */
  readonly atRevision: number;
}

function toCompare({ key, target, result, operand }: ModelCompare): Compare {
  const targetUnion =
    target === "value"
      ? { case: "value" as const, value: fromLatin1(operand as string) }
      : { case: FIELDS[target], value: operand as number };
  return { result: RESULTS[result], target: TARGETS[target], key: fromLatin1(key), targetUnion, rangeEnd: EMPTY };
}

function toPut({ key, value, lease }: Extract<ModelOp, { kind: "put" }>): PutRequest {
  return PutRequest.create({ key: fromLatin1(key), value: fromLatin1(value), lease: BigInt(lease ?? 0) });
}

function fromPut({ key, value, lease }: PutRequest): Extract<ModelOp, { kind: "put" }> {
  return { kind: "put", key: toLatin1(key), value: toLatin1(value), ...(lease !== 0n && { lease: `${lease}` }) };
}

function toOp(op: ModelOp): RequestOp {
  const key = fromLatin1(op.key);
  if (op.kind === "put") return { request: { case: "requestPut", value: toPut(op) } };
  const rangeEnd = fromLatin1(op.end);
  if (op.kind === "range") return { request: { case: "requestRange", value: RangeRequest.create({ key, rangeEnd }) } };
  return { request: { case: "requestDeleteRange", value: DeleteRangeRequest.create({ key, rangeEnd }) } };
}

/** The method and the bytes of a request. */
export function encodeRequest(request: ModelRequest, mode: ReadMode): { path: string; bytes: Uint8Array } {
  switch (request.kind) {
    case "put":
      return { path: Put.path, bytes: PutRequest.encode(toPut(request)) };
    case "delete":
      return {
        path: DeleteRange.path,
        bytes: DeleteRangeRequest.encode({ key: fromLatin1(request.key), rangeEnd: fromLatin1(request.end) }),
      };
    case "range":
      return {
        path: Range.path,
        bytes: RangeRequest.encode({
          key: fromLatin1(request.key),
          rangeEnd: fromLatin1(request.end),
          revision: mode.atRevision,
          serializable: mode.serializable,
        }),
      };
    case "revoke":
      return { path: LeaseService.methods.LeaseRevoke.path, bytes: LeaseRevokeRequest.encode({ ID: BigInt(request.lease) }) };
    case "txn":
      return {
        path: Txn.path,
        bytes: TxnRequest.encode({
          compare: request.compares.map(toCompare),
          success: request.success.map(toOp),
          failure: request.failure.map(toOp),
        }),
      };
  }
}

/** An encoded mvccpb.KeyValue as the model has it. */
export function toModelKv(bytes: Uint8Array): ModelKv {
  const { key, value, createRevision, modRevision, version, lease } = KeyValue.decode(bytes);
  const kv = { key: toLatin1(key), value: toLatin1(value), create: createRevision, mod: modRevision, version };
  return lease === 0n ? kv : { ...kv, lease: `${lease}` };
}

function opAnswer({ response }: ResponseOp): OpAnswer {
  switch (response?.case) {
    case "responseRange":
      return { kind: "range", kvs: response.value.kvs.map(toModelKv) };
    case "responseDeleteRange":
      return { kind: "delete", deleted: response.value.deleted };
    default:
      return { kind: "put" };
  }
}

/** The answer to a request of that kind. */
export function decodeAnswer(kind: ModelRequest["kind"], bytes: Uint8Array): Answer {
  switch (kind) {
    case "put":
      return { revision: PutResponse.decode(bytes).header!.revision, succeeded: true, answers: [{ kind: "put" }] };
    case "delete": {
      const { header, deleted } = DeleteRangeResponse.decode(bytes);
      return { revision: header!.revision, succeeded: true, answers: [{ kind: "delete", deleted }] };
    }
    case "range": {
      const { header, kvs } = RangeResponse.decode(bytes);
      return { revision: header!.revision, succeeded: true, answers: [{ kind: "range", kvs: kvs.map(toModelKv) }] };
    }
    case "revoke":
      return { revision: LeaseRevokeResponse.decode(bytes).header!.revision, succeeded: true, answers: [{ kind: "revoke" }] };
    case "txn":
      return txnAnswer(TxnResponse.decode(bytes));
  }
}

/** The answer in a TxnResponse. */
export function txnAnswer({ header, succeeded, responses }: TxnResponse): Answer {
  return { revision: header!.revision, succeeded, answers: responses.map(opAnswer) };
}

const RESULT_NAMES = ["=", ">", "<", "!="] as const;

function fromCompare({ key, result, targetUnion }: Compare): ModelCompare {
  const name = RESULT_NAMES[result];
  switch (targetUnion?.case) {
    case "value":
      return { key: toLatin1(key), target: "value", result: name, operand: toLatin1(targetUnion.value) };
    case "modRevision":
      return { key: toLatin1(key), target: "mod", result: name, operand: targetUnion.value };
    case "createRevision":
      return { key: toLatin1(key), target: "create", result: name, operand: targetUnion.value };
    case "version":
      return { key: toLatin1(key), target: "version", result: name, operand: targetUnion.value };
    default:
      throw new Error("a comparison that no client of the simulator makes");
  }
}

function fromOp({ request }: RequestOp): ModelOp {
  switch (request?.case) {
    case "requestPut":
      return fromPut(request.value);
    case "requestDeleteRange":
      return { kind: "delete", key: toLatin1(request.value.key), end: toLatin1(request.value.rangeEnd) };
    case "requestRange":
      return { kind: "range", key: toLatin1(request.value.key), end: toLatin1(request.value.rangeEnd) };
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
    const { key, rangeEnd } = DeleteRangeRequest.decode(entry.deleteRange);
    return { kind: "delete", key: toLatin1(key), end: toLatin1(rangeEnd) };
  }
  if (entry.txn !== undefined) {
    const { compare, success, failure } = TxnRequest.decode(entry.txn);
    return { kind: "txn", compares: compare.map(fromCompare), success: success.map(fromOp), failure: failure.map(fromOp) };
  }
  if (entry.leaseRevoke !== undefined) return { kind: "revoke", lease: `${LeaseRevokeRequest.decode(entry.leaseRevoke).ID}` };
  return undefined;
}
