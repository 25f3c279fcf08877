/**
 * etcdserverpb.KV. What is read is checked here, what is written by `propose`; its bytes go on as the client sent them.
 */
import {
  CompactionRequest,
  CompactionResponse,
  DeleteRangeResponse,
  type ErrorName,
  errorOf,
  KVService,
  type MessageType,
  PutRequest,
  PutResponse,
  RangeRequest,
  type RangeResponse,
  type ResponseHeader,
  TxnRequest,
  TxnResponse,
} from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import {
  type Applied,
  applyRange,
  applyTxn,
  checkRange,
  checkTxn,
  isReadOnlyTxn,
  isSerializableTxn,
  noLeases,
  putCostBytes,
  txnCostBytes,
} from "@quorate/store";
import type { Member } from "../member/member.ts";
import { encodeRange } from "./range-answer.ts";

function refuse(error: ErrorName | undefined): void {
  if (error !== undefined) throw errorOf(error);
}

/** The handlers of the KV service, by path. */
export function kvService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { maxTxnOps } = member.config;
  const { Range, Put, DeleteRange, Txn, Compact } = KVService.methods;

  const answer = <T extends { header: ResponseHeader | undefined }>(type: MessageType<T>, applied: Applied): Uint8Array => {
    if (applied.error !== undefined) throw applied.error;
    return encodeAnswer(type, applied.response as unknown as T);
  };
  const encodeAnswer = <T extends { header: ResponseHeader | undefined }>(type: MessageType<T>, response: T): Uint8Array => {
    response.header = member.header(response.header?.revision ?? 0);
    return type.encode(response);
  };

  const [rangeFailed, rangeSucceeded] = ["false", "true"].map((success) => member.metrics.rangeDuration.with(success));
  const timedRange = (request: RangeRequest): RangeResponse => {
    const startMs = member.clock.monotonicMs();
    let duration = rangeFailed!;
    try {
      const response = applyRange(member.store.mvcc, request);
      duration = rangeSucceeded!;
      return response;
    } finally {
      duration.observe((member.clock.monotonicMs() - startMs) / 1000);
    }
  };

  const read = async <T>(serializable: boolean, run: () => T): Promise<T> => {
    if (!serializable) await member.linearizable();
    if (!member.isServable) await member.servable();
    return run();
  };

  return new Map<string, UnaryHandler>([
    [
      Range.path,
      async (bytes) => {
        const request = RangeRequest.decode(bytes);
        refuse(checkRange(request));
        const response = await read(request.serializable, () => timedRange(request));
        response.header = member.header(response.header?.revision ?? 0);
        return encodeRange(response);
      },
    ],
    [
      Put.path,
      async (bytes) => {
        const request = PutRequest.decode(bytes);
        if (!member.space.keeper.hasRoom(putCostBytes(request))) await member.space.keeper.refuse();
        return answer(PutResponse, await member.propose("put", bytes, request));
      },
    ],
    [DeleteRange.path, async (bytes) => answer(DeleteRangeResponse, await member.propose("deleteRange", bytes))],
    [
      Txn.path,
      async (bytes) => {
        const request = TxnRequest.decode(bytes);
        if (!member.space.keeper.hasRoom(txnCostBytes(request))) await member.space.keeper.refuse();
        if (!isReadOnlyTxn(request)) return answer(TxnResponse, await member.propose("txn", bytes, request));
        refuse(checkTxn(request, maxTxnOps));
        return encodeAnswer(TxnResponse, await read(isSerializableTxn(request), () => applyTxn(member.store.mvcc, noLeases, request)));
      },
    ],
    [
      Compact.path,
      async (bytes) => {
        const request = CompactionRequest.decode(bytes);
        const applied = await member.propose("compaction", bytes, request);
        if (request.physical && applied.error === undefined) await member.space.compacted();
        if (applied.error !== undefined) throw applied.error;
        return CompactionResponse.encode({ header: member.header(member.store.mvcc.currentRevision) });
      },
    ],
  ]);
}
