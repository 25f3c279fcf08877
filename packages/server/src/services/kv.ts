/**
 * etcdserverpb.KV. What is read is checked here, what is written by `propose`; its bytes go on as the client sent them.
 */
import {
  CompactionRequest,
  CompactionResponse,
  DeleteRangeRequest,
  type DeleteRangeResponse,
  type ErrorName,
  errorOf,
  KVService,
  PutRequest,
  PutResponse,
  RangeRequest,
  type RangeResponse,
  type ResponseHeader,
  TxnResponse,
} from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import {
  type Applied,
  applyRange,
  applyTxn,
  checkRange,
  checkTxn,
  checkWriteAnswer,
  copiedBytes,
  decodeTxn,
  isReadOnlyTxn,
  isSerializableTxn,
  mayAnswerMuch,
  noLeases,
  putCostBytes,
  txnCostBytes,
} from "@quorate/store";
import type { Member } from "../member/member.ts";
import { encodeRange } from "./range-answer.ts";
import { encodeDeleteRange, encodeTxn, inTurns } from "./write-answer.ts";

function refuse(error: ErrorName | undefined): void {
  if (error !== undefined) throw errorOf(error);
}

/** The handlers of the KV service, by path. */
export function kvService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { maxTxnOps } = member.config;
  const { Range, Put, DeleteRange, Txn, Compact } = KVService.methods;

  /** The response with this member's header. */
  const answered = <T extends { header: ResponseHeader | undefined }>({ error, response }: Applied): T => {
    if (error !== undefined) throw error;
    return withHeader(response as unknown as T);
  };
  const withHeader = <T extends { header: ResponseHeader | undefined }>(response: T): T => {
    response.header = member.header(response.header?.revision ?? 0);
    return response;
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
        const costBytes = putCostBytes(request) + (request.ignoreValue ? copiedBytes(member.store.mvcc.view, request) : 0);
        if (!member.space.keeper.hasRoom(costBytes)) await member.space.keeper.refuse();
        return PutResponse.encode(answered<PutResponse>(await member.propose("put", bytes, request)));
      },
    ],
    [
      DeleteRange.path,
      async (bytes) => {
        const request = DeleteRangeRequest.decode(bytes);
        if (mayAnswerMuch(request)) await inTurns(member.clock, checkWriteAnswer(member.store.mvcc.view, request));
        return encodeDeleteRange(member.clock, answered<DeleteRangeResponse>(await member.propose("deleteRange", bytes, request)));
      },
    ],
    [
      Txn.path,
      async (bytes) => {
        const request = decodeTxn(bytes, maxTxnOps);
        const costBytes = txnCostBytes(request);
        if (costBytes > 0 && !member.space.keeper.hasRoom(costBytes + copiedBytes(member.store.mvcc.view, request))) {
          await member.space.keeper.refuse();
        }
        if (!isReadOnlyTxn(request)) {
          if (mayAnswerMuch(request)) await inTurns(member.clock, checkWriteAnswer(member.store.mvcc.view, request));
          return encodeTxn(member.clock, answered<TxnResponse>(await member.propose("txn", bytes, request)));
        }
        refuse(checkTxn(request, maxTxnOps));
        return TxnResponse.encode(withHeader(await read(isSerializableTxn(request), () => applyTxn(member.store.mvcc, noLeases, request))));
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
