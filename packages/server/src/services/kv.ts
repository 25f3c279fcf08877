/**
 * etcdserverpb.KV. Requests are checked here, before they cost anything; the bytes of those that write go on as the client sent them.
 */
import {
  CompactionRequest,
  CompactionResponse,
  DeleteRangeRequest,
  DeleteRangeResponse,
  type ErrorName,
  errorOf,
  KVService,
  type MessageType,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeResponse,
  type ResponseHeader,
  TxnRequest,
  TxnResponse,
} from "@quorate/proto";
import type { CallContext, MessageBytes, UnaryHandler } from "@quorate/rpc";
import {
  type Applied,
  applyRange,
  checkDeleteRange,
  checkPut,
  checkRange,
  checkTxn,
  isPlainGet,
  isReadOnlyTxn,
  isSerializableTxn,
  putCostBytes,
  rangeIfSmall,
  rangeInto,
  readTxn,
  type Steps,
  txnCostBytes,
} from "@quorate/store";
import type { Member } from "../member/member.ts";
import { callerOf, pinned } from "../reads/pinned.ts";
import type { SliceTask } from "../reads/slices.ts";
import { encodeReadTxn, messageOf, RangeWriter } from "./range-answer.ts";

/** A record from this size on counts for the time of a turn. */
const LARGE_RECORD_BYTES: number = 16 << 10;

function refuse(error: ErrorName | undefined): void {
  if (error !== undefined) throw errorOf(error);
}

/** Resolves when the store may be read for a client. */
async function mayRead(member: Member, serializable: boolean): Promise<void> {
  if (!serializable) await member.linearizable();
  if (!member.isServable) await member.servable();
}

/**
 * Range: one key at once, a few keys at once while the turn has time, all else in slices.
 */
function rangeHandler(member: Member): UnaryHandler {
  const { clock, slices } = member;
  const [failed, succeeded] = ["false", "true"].map((success) => member.metrics.rangeDuration.with(success));
  const encode = (response: RangeResponse): Uint8Array => {
    response.header = member.header(response.header!.revision);
    return RangeResponse.encode(response);
  };
  const get = (request: RangeRequest): Uint8Array => {
    const response = applyRange(member.store.mvcc, request);
    const [record] = response.kvs;
    if (record !== undefined && record.length >= LARGE_RECORD_BYTES) slices.noteBytes(record.length);
    return encode(response);
  };
  const read = (request: RangeRequest, context: CallContext): MessageBytes | Promise<MessageBytes> => {
    if (isPlainGet(request) && slices.hasTime) return get(request);
    const caller = callerOf(context);
    const few = slices.now(caller, () => rangeIfSmall(member.store.mvcc.view, request));
    if (few !== undefined) return encode(few);
    return slices.run(caller, (task) => rangeSteps(member, request, task));
  };
  return async (bytes, context) => {
    const request = RangeRequest.decode(bytes);
    refuse(checkRange(request));
    await mayRead(member, request.serializable);
    const startMs = clock.monotonicMs();
    let duration = failed!;
    try {
      const answer = read(request, context);
      const message = answer instanceof Promise ? await answer : answer;
      duration = succeeded!;
      return message;
    } finally {
      duration.observe((clock.monotonicMs() - startMs) / 1000);
    }
  };
}

function* rangeSteps(member: Member, request: RangeRequest, task: SliceTask): Steps<MessageBytes> {
  const writer = new RangeWriter(task.charge);
  const summary = yield* pinned(member, task, (view) => rangeInto(view, request, writer));
  return messageOf(writer.finish(member.header(summary.revision), summary));
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

  const ranges = rangeHandler(member);

  return new Map<string, UnaryHandler>([
    [Range.path, ranges],
    [
      Put.path,
      async (bytes) => {
        const request = PutRequest.decode(bytes);
        if (!member.space.keeper.hasRoom(putCostBytes(request))) await member.space.keeper.refuse();
        refuse(checkPut(request));
        return answer(PutResponse, await member.propose("put", bytes));
      },
    ],
    [
      DeleteRange.path,
      async (bytes) => {
        refuse(checkDeleteRange(DeleteRangeRequest.decode(bytes)));
        return answer(DeleteRangeResponse, await member.propose("deleteRange", bytes));
      },
    ],
    [
      Txn.path,
      async (bytes, context) => {
        const request = TxnRequest.decode(bytes);
        if (!member.space.keeper.hasRoom(txnCostBytes(request))) await member.space.keeper.refuse();
        refuse(checkTxn(request, maxTxnOps));
        if (!isReadOnlyTxn(request)) return answer(TxnResponse, await member.propose("txn", bytes));
        await mayRead(member, isSerializableTxn(request));
        const steps = (task: SliceTask) => pinned(member, task, (view) => readTxn(view, request, () => new RangeWriter(task.charge)));
        const read = await member.slices.run(callerOf(context), steps);
        return messageOf(encodeReadTxn(read, (revision) => member.header(revision)));
      },
    ],
    [
      Compact.path,
      async (bytes) => {
        const { physical } = CompactionRequest.decode(bytes);
        const applied = await member.propose("compaction", bytes);
        if (physical && applied.error === undefined) await member.space.compacted();
        if (applied.error !== undefined) throw applied.error;
        return CompactionResponse.encode({ header: member.header(member.store.mvcc.currentRevision) });
      },
    ],
  ]);
}
