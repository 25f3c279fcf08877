/**
 * --namespace: a prefix before every key that goes to the cluster, and removed from every key that
 * comes back (etcd: client/v3/namespace).
 */
import {
  type Compare,
  DeleteRangeRequest,
  DeleteRangeResponse,
  endOfPrefix,
  errorOf,
  fromUtf8,
  KeyValue,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeResponse,
  RangeStreamResponse,
  type RequestOp,
  type ResponseOp,
  TxnRequest,
  TxnResponse,
} from "@quorate/proto";
import { StatusError } from "@quorate/rpc";

/** Transactions in transactions, as deep as the cluster takes them. */
const MAX_DEPTH = 128;

export class Namespace {
  readonly #prefix: Uint8Array;
  /** The first key behind the namespace. */
  readonly #edge: Uint8Array;

  /** @param prefix not empty */
  constructor(prefix: string) {
    this.#prefix = fromUtf8(prefix);
    this.#edge = endOfPrefix(this.#prefix);
  }

  /** A key as the cluster knows it. */
  key(key: Uint8Array): Uint8Array {
    const whole = new Uint8Array(this.#prefix.length + key.length);
    whole.set(this.#prefix);
    whole.set(key, this.#prefix.length);
    return whole;
  }

  /** A range as the cluster knows it: "from the key on" ends with the namespace. */
  range(key: Uint8Array, rangeEnd: Uint8Array): { key: Uint8Array; rangeEnd: Uint8Array } {
    const isToTheEdge = rangeEnd.length === 1 && rangeEnd[0] === 0;
    const end = isToTheEdge ? this.#edge : rangeEnd.length === 0 ? rangeEnd : this.key(rangeEnd);
    return { key: this.key(key), rangeEnd: end };
  }

  /** A key as the client knows it; undefined for one outside of the namespace. */
  plainKey(key: Uint8Array): Uint8Array | undefined {
    const prefix = this.#prefix;
    if (key.length < prefix.length) return undefined;
    for (let i = 0; i < prefix.length; i++) if (key[i] !== prefix[i]) return undefined;
    return key.subarray(prefix.length);
  }

  /** An encoded key-value pair as the client knows it. */
  plainKeyValue(bytes: Uint8Array): Uint8Array {
    const pair = KeyValue.decode(bytes);
    return KeyValue.encode({ ...pair, key: this.plainKey(pair.key) ?? pair.key });
  }

  // --- Requests and responses of KV ---

  rangeRequest(bytes: Uint8Array): Uint8Array {
    return RangeRequest.encode(this.#range(RangeRequest.decode(bytes)));
  }

  rangeResponse(bytes: Uint8Array): Uint8Array {
    return RangeResponse.encode(this.#plainRange(RangeResponse.decode(bytes)));
  }

  rangeStreamResponse(bytes: Uint8Array): Uint8Array {
    const { rangeResponse } = RangeStreamResponse.decode(bytes);
    return RangeStreamResponse.encode({
      rangeResponse: rangeResponse && this.#plainRange(rangeResponse),
    });
  }

  putRequest(bytes: Uint8Array): Uint8Array {
    const request = PutRequest.decode(bytes);
    return PutRequest.encode({ ...request, key: this.#requiredKey(request.key) });
  }

  putResponse(bytes: Uint8Array): Uint8Array {
    return PutResponse.encode(this.#plainPut(PutResponse.decode(bytes)));
  }

  deleteRequest(bytes: Uint8Array): Uint8Array {
    return DeleteRangeRequest.encode(this.#range(DeleteRangeRequest.decode(bytes)));
  }

  deleteResponse(bytes: Uint8Array): Uint8Array {
    return DeleteRangeResponse.encode(this.#plainDelete(DeleteRangeResponse.decode(bytes)));
  }

  txnRequest(bytes: Uint8Array): Uint8Array {
    return TxnRequest.encode(this.#txn(TxnRequest.decode(bytes), 0));
  }

  txnResponse(bytes: Uint8Array): Uint8Array {
    return TxnResponse.encode(this.#plainTxn(TxnResponse.decode(bytes)));
  }

  /** etcd refuses an empty key in a namespace, also as the start of a range. */
  #requiredKey(key: Uint8Array): Uint8Array {
    if (key.length > 0) return this.key(key);
    const { grpcCode, message } = errorOf("EmptyKey");
    throw new StatusError(grpcCode, message);
  }

  #range<T extends { key: Uint8Array; rangeEnd: Uint8Array }>(request: T): T {
    this.#requiredKey(request.key);
    return { ...request, ...this.range(request.key, request.rangeEnd) };
  }

  #txn(txn: TxnRequest, depth: number): TxnRequest {
    return {
      compare: txn.compare.map(
        (one): Compare => ({
          ...one,
          ...this.range(one.key, one.rangeEnd),
        }),
      ),
      success: txn.success.map((op) => this.#op(op, depth)),
      failure: txn.failure.map((op) => this.#op(op, depth)),
    };
  }

  #op({ request }: RequestOp, depth: number): RequestOp {
    switch (request?.case) {
      case "requestRange": {
        const { key, rangeEnd } = request.value;
        return {
          request: { ...request, value: { ...request.value, ...this.range(key, rangeEnd) } },
        };
      }
      case "requestDeleteRange": {
        const { key, rangeEnd } = request.value;
        return {
          request: { ...request, value: { ...request.value, ...this.range(key, rangeEnd) } },
        };
      }
      case "requestPut":
        return {
          request: { ...request, value: { ...request.value, key: this.key(request.value.key) } },
        };
      case "requestTxn":
        if (depth >= MAX_DEPTH) {
          const { grpcCode, message } = errorOf("TooManyOps");
          throw new StatusError(grpcCode, message);
        }
        return { request: { ...request, value: this.#txn(request.value, depth + 1) } };
      default:
        return { request };
    }
  }

  #plainRange(response: RangeResponse): RangeResponse {
    return { ...response, kvs: response.kvs.map((bytes) => this.plainKeyValue(bytes)) };
  }

  #plainPut(response: PutResponse): PutResponse {
    const { prevKv } = response;
    return { ...response, prevKv: prevKv && this.plainKeyValue(prevKv) };
  }

  #plainDelete(response: DeleteRangeResponse): DeleteRangeResponse {
    return { ...response, prevKvs: response.prevKvs.map((bytes) => this.plainKeyValue(bytes)) };
  }

  #plainTxn(response: TxnResponse): TxnResponse {
    return { ...response, responses: response.responses.map((one) => this.#plainOp(one)) };
  }

  #plainOp({ response }: ResponseOp): ResponseOp {
    switch (response?.case) {
      case "responseRange":
        return { response: { ...response, value: this.#plainRange(response.value) } };
      case "responsePut":
        return { response: { ...response, value: this.#plainPut(response.value) } };
      case "responseDeleteRange":
        return { response: { ...response, value: this.#plainDelete(response.value) } };
      case "responseTxn":
        return { response: { ...response, value: this.#plainTxn(response.value) } };
      default:
        return { response };
    }
  }
}
