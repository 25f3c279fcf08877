/**
 * Responses with their KeyValue records decoded. The codecs leave records as bytes, because members
 * pass them through unread.
 */
import {
  type DeleteRangeResponse,
  KeyValue,
  type PutResponse,
  type RangeResponse,
  type ResponseHeader,
  type ResponseOp,
  type TxnResponse,
  toBase64,
} from "@quorate/proto";

/**
 * Results as JSON.stringify writes them: bytes in base64 and bigints as decimal texts, as etcd's
 * JSON gateway does; bigints have no JSON, and a Buffer's is an array of numbers.
 */
const TO_JSON: PropertyDescriptor = {
  // Not enumerable: copies, comparisons and loops do not see it.
  enumerable: false,
  configurable: true,
  value(this: object) {
    return plain({ ...this });
  },
};

/** Gives a result, and all messages in it, a toJSON. Returns it. */
export function withJson<T extends object>(result: T): T {
  if ("toJSON" in result) return result;
  Object.defineProperty(result, "toJSON", TO_JSON);
  for (const name in result) {
    const value: unknown = result[name];
    if (!isMessage(value)) continue;
    if (!Array.isArray(value)) withJson(value);
    else if (isMessage(value[0])) for (const one of value) addTo(one);
  }
  return result;
}

function addTo(value: unknown): void {
  if (isMessage(value)) withJson(value);
}

function isMessage(value: unknown): value is object {
  return typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Uint8Array) return toBase64(value);
  if (Array.isArray(value)) return value.map(plain);
  if (!isMessage(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
}

/** What a read returns. */
export interface GetResult {
  readonly header: ResponseHeader;
  readonly kvs: readonly KeyValue[];
  /** True if `limit` cut the range short. */
  readonly more: boolean;
  /** How many keys the range has, regardless of `limit`. */
  readonly count: number;
}

/** What a put returns. */
export interface PutResult {
  readonly header: ResponseHeader;
  /** The previous record, if it was requested and existed. */
  readonly prevKv: KeyValue | undefined;
}

/** What a deletion returns. */
export interface DeleteResult {
  readonly header: ResponseHeader;
  readonly deleted: number;
  readonly prevKvs: readonly KeyValue[];
}

/** What a transaction returns. */
export interface TxnResult {
  readonly header: ResponseHeader;
  /** Whether all comparisons held. */
  readonly succeeded: boolean;
  /** One result per operation, in their order. */
  readonly responses: readonly OpResult[];
}

/** The result of a transaction of these operations, by whether all comparisons held. */
export type TxnResultOf<Success, Failure> = { readonly header: ResponseHeader } & (
  | { readonly succeeded: true; readonly responses: ResultsOf<Success> }
  | { readonly succeeded: false; readonly responses: ResultsOf<Failure> }
);

type ResultsOf<Ops> = { readonly [I in keyof Ops]: ResultOf<Ops[I]> };

type ResultOf<O> = O extends { request: { case: infer Case } }
  ? Case extends keyof Kinds
    ? Extract<OpResult, { kind: Kinds[Case] }>
    : OpResult
  : OpResult;

interface Kinds {
  readonly requestRange: "get";
  readonly requestPut: "put";
  readonly requestDeleteRange: "delete";
  readonly requestTxn: "txn";
}

/** The result of one operation of a transaction. */
export type OpResult =
  | { readonly kind: "get"; readonly result: GetResult }
  | { readonly kind: "put"; readonly result: PutResult }
  | { readonly kind: "delete"; readonly result: DeleteResult }
  | { readonly kind: "txn"; readonly result: TxnResult };

const NO_HEADER: ResponseHeader = withJson({
  clusterId: 0n,
  memberId: 0n,
  revision: 0,
  raftTerm: 0,
});

export function getResult(response: RangeResponse): GetResult {
  return withJson({
    header: response.header ?? NO_HEADER,
    kvs: response.kvs.map((kv) => KeyValue.decode(kv)),
    more: response.more,
    count: response.count,
  });
}

export function putResult(response: PutResponse): PutResult {
  return withJson({
    header: response.header ?? NO_HEADER,
    prevKv: response.prevKv === undefined ? undefined : KeyValue.decode(response.prevKv),
  });
}

export function deleteResult(response: DeleteRangeResponse): DeleteResult {
  return withJson({
    header: response.header ?? NO_HEADER,
    deleted: response.deleted,
    prevKvs: response.prevKvs.map((kv) => KeyValue.decode(kv)),
  });
}

export function txnResult(response: TxnResponse): TxnResult {
  return withJson({
    header: response.header ?? NO_HEADER,
    succeeded: response.succeeded,
    responses: response.responses.map(opResult),
  });
}

function opResult({ response }: ResponseOp): OpResult {
  switch (response?.case) {
    case "responseRange":
      return { kind: "get", result: getResult(response.value) };
    case "responsePut":
      return { kind: "put", result: putResult(response.value) };
    case "responseDeleteRange":
      return { kind: "delete", result: deleteResult(response.value) };
    case "responseTxn":
      return { kind: "txn", result: txnResult(response.value) };
    case undefined:
      throw new TypeError("the server returned no result for an operation of a transaction");
  }
}
