/**
 * etcdserverpb.KV. What is read is checked here, what is written by `propose`; its bytes go on as
 * the client sent them.
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
  RangeResponse,
  type ResponseHeader,
  type TxnRequest,
  type TxnResponse,
} from "@quorate/proto";
import type { CallContext, MessageBytes, UnaryHandler } from "@quorate/rpc";
import {
  type Applied,
  applyRange,
  checkRange,
  checkTxn,
  checkWriteAnswer,
  copiedBytes,
  decodeTxn,
  isPlainGet,
  isReadOnlyTxn,
  isSerializableTxn,
  mayAnswerMuch,
  putCostBytes,
  rangeIfSmall,
  rangeInto,
  readTxn,
  type Steps,
  txnCostBytes,
} from "@quorate/store";
import type { Member } from "../member/member.ts";
import { callerOf, pinned } from "../reads/pinned.ts";
import { SharedTurns } from "../reads/shared-turns.ts";
import type { SliceTask } from "../reads/slice-task.ts";
import { encodeReadTxn, messageOf, RangeWriter } from "./range-answer.ts";
import { type Encoding, encodeDeleteRange, encodeTxn } from "./write-answer.ts";

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
  const [failed, succeeded] = ["false", "true"].map((success) =>
    member.metrics.rangeDuration.with(success),
  );
  const encode = (response: RangeResponse): Uint8Array => {
    response.header = member.header(response.header!.revision);
    return RangeResponse.encode(response);
  };
  const get = (request: RangeRequest): Uint8Array => {
    const response = applyRange(member.store.mvcc, request);
    const [record] = response.kvs;
    if (record !== undefined && record.length >= LARGE_RECORD_BYTES)
      slices.noteBytes(record.length);
    return encode(response);
  };
  const read = (
    request: RangeRequest,
    context: CallContext,
  ): MessageBytes | Promise<MessageBytes> => {
    if (isPlainGet(request) && slices.takesGet()) return get(request);
    const caller = callerOf(context);
    const few = slices.now(caller, (mostKeys) =>
      rangeIfSmall(member.store.mvcc.view, request, mostKeys),
    );
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

  /** The response with this member's header. */
  const answered = <T extends { header: ResponseHeader | undefined }>({
    error,
    response,
  }: Applied): T => {
    if (error !== undefined) throw error;
    return withHeader(response as unknown as T);
  };
  const withHeader = <T extends { header: ResponseHeader | undefined }>(response: T): T => {
    response.header = member.header(response.header?.revision ?? 0);
    return response;
  };

  const ranges = rangeHandler(member);
  const turns = new SharedTurns(member.clock);
  const encoding = (context: CallContext): Encoding => ({ turns, caller: callerOf(context) });
  const mayAnswer = (
    request: DeleteRangeRequest | TxnRequest,
    context: CallContext,
  ): void | Promise<void> =>
    member.slices.run(callerOf(context), (task) =>
      pinned(member, task, (view) => checkWriteAnswer(view, request)),
    );

  return new Map<string, UnaryHandler>([
    [Range.path, ranges],
    [
      Put.path,
      async (bytes) => {
        const request = PutRequest.decode(bytes);
        const costBytes =
          putCostBytes(request) +
          (request.ignoreValue ? copiedBytes(member.store.mvcc.view, request) : 0);
        if (!member.space.keeper.hasRoom(costBytes)) await member.space.keeper.refuse();
        return PutResponse.encode(
          answered<PutResponse>(await member.propose("put", bytes, request)),
        );
      },
    ],
    [
      DeleteRange.path,
      async (bytes, context) => {
        const request = DeleteRangeRequest.decode(bytes);
        if (mayAnswerMuch(request)) await mayAnswer(request, context);
        return encodeDeleteRange(
          encoding(context),
          answered<DeleteRangeResponse>(await member.propose("deleteRange", bytes, request)),
        );
      },
    ],
    [
      Txn.path,
      async (bytes, context) => {
        const request = decodeTxn(bytes, maxTxnOps);
        const costBytes = txnCostBytes(request);
        if (
          costBytes > 0 &&
          !member.space.keeper.hasRoom(costBytes + copiedBytes(member.store.mvcc.view, request))
        ) {
          await member.space.keeper.refuse();
        }
        if (!isReadOnlyTxn(request)) {
          if (mayAnswerMuch(request)) await mayAnswer(request, context);
          return encodeTxn(
            encoding(context),
            answered<TxnResponse>(await member.propose("txn", bytes, request)),
          );
        }
        refuse(checkTxn(request, maxTxnOps));
        await mayRead(member, isSerializableTxn(request));
        const steps = (task: SliceTask) =>
          pinned(member, task, (view) =>
            readTxn(view, request, () => new RangeWriter(task.charge)),
          );
        const read = await member.slices.run(callerOf(context), steps);
        return messageOf(encodeReadTxn(read, (revision) => member.header(revision)));
      },
    ],
    [
      Compact.path,
      async (bytes) => {
        const request = CompactionRequest.decode(bytes);
        const applied = await member.propose("compaction", bytes, request);
        if (request.physical && applied.error === undefined) await member.space.compacted();
        if (applied.error !== undefined) throw applied.error;
        return CompactionResponse.encode({
          header: member.header(member.store.mvcc.currentRevision),
        });
      },
    ],
  ]);
}
