/**
 * etcdserverpb.KV. What is read is checked here, what is written by `propose`; its bytes go on as
 * the client sent them.
 */
import {
  type Caller,
  callerOf,
  type Member,
  type Proposer,
  pinned,
  type Reader,
  SharedTurns,
  type SliceTask,
} from "@quorate/member";
import {
  CompactionRequest,
  CompactionResponse,
  DeleteRangeRequest,
  defined,
  type ErrorName,
  errorOf,
  KVService,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeResponse,
  type TxnRequest,
  toLatin1,
} from "@quorate/proto";
import { type CallContext, Later, type UnaryHandler, type UnaryResponse } from "@quorate/rpc";
import {
  type Applied,
  type AppliedEntry,
  checkRange,
  checkTxn,
  checkWork,
  decodeTxn,
  isPlainGet,
  isReadOnlyTxn,
  isSerializableTxn,
  mayReadMuch,
  rangeIfSmall,
  rangeInto,
  readKey,
  readTxn,
  type Steps,
} from "@quorate/store";
import { completed, EncodedHeader, toStatusError } from "../calls/results.ts";
import {
  encodeReadTxn,
  GetAnswers,
  isSoleKey,
  messageOf,
  RangeWriter,
  soleKey,
} from "./range-answer.ts";
import { encodeDeleteRange, encodeTxn } from "./write-answer.ts";

/** A record from this size on counts for the time of a turn. */
const LARGE_RECORD_BYTES: number = 16 << 10;
/**
 * Of so many reads of one key one is timed, and stands for all: reading the clock twice for each
 * would take a tenth of the time of such a read.
 */
const GETS_A_SAMPLE = 16;

function refuse(error: ErrorName | undefined): void {
  if (error !== undefined) throw errorOf(error);
}

/**
 * Range: one key at once, a few keys at once while the turn has time, all else in slices.
 */
function rangeHandler(member: Member): UnaryHandler {
  const { clock, slices } = member;
  const header = new EncodedHeader(member);
  const answers = new GetAnswers();
  const failed = member.metrics.rangeDuration.with("false");
  const succeeded = member.metrics.rangeDuration.with("true");
  const encode = (response: RangeResponse): Uint8Array => {
    response.header = member.header(defined(response.header, "the header").revision);
    return RangeResponse.encode(response);
  };
  const get = (key: string, revision: number): UnaryResponse => {
    const record = readKey(member.store.mvcc.view, key, revision);
    if (record !== undefined && record.length >= LARGE_RECORD_BYTES)
      slices.noteBytes(record.length);
    return answers.of(header.now().before, record);
  };
  const read = (request: RangeRequest, caller: Caller): UnaryResponse | Promise<UnaryResponse> => {
    if (isPlainGet(request) && slices.takesGet())
      return get(toLatin1(request.key), request.revision);
    const few = slices.now(caller, (mostKeys) =>
      rangeIfSmall(member.store.mvcc.view, request, mostKeys),
    );
    if (few !== undefined) return encode(few);
    return slices.run(caller, (task) => rangeSteps(member, request, task));
  };
  const secondsSince = (startMs: number): number => (clock.monotonicMs() - startMs) / 1000;
  const timed = (request: RangeRequest, caller: Caller): UnaryResponse | Promise<UnaryResponse> => {
    const startMs = clock.monotonicMs();
    try {
      const answer = read(request, caller);
      if (!(answer instanceof Promise)) succeeded.observe(secondsSince(startMs));
      else {
        answer.then(
          () => succeeded.observe(secondsSince(startMs)),
          () => failed.observe(secondsSince(startMs)),
        );
      }
      return answer;
    } catch (error) {
      failed.observe(secondsSince(startMs));
      throw error;
    }
  };
  const permitted = (request: RangeRequest, caller: Caller, linearizable: boolean) =>
    member.read(caller, {
      access: { kind: "range", request },
      linearizable,
      run: () => timed(request, caller),
    });
  let gets = 0;
  let getSeconds = 0;
  const granted: ReadEncoder = (answer) => {
    const { isOpen } = member;
    const key = isOpen ? soleKey(answer.request) : undefined;
    if (key !== undefined && slices.takesGet()) {
      const isTimed = gets++ % GETS_A_SAMPLE === 0;
      const startMs = isTimed ? clock.monotonicMs() : 0;
      const response = get(key, 0);
      if (isTimed) getSeconds = secondsSince(startMs);
      succeeded.observe(getSeconds);
      return response;
    }
    const request = RangeRequest.decode(answer.request);
    return isOpen ? timed(request, answer.caller) : permitted(request, answer.caller, false);
  };
  return (bytes, context) => {
    const { isOpen } = member;
    if (!isOpen || !isSoleKey(bytes)) {
      const request = RangeRequest.decode(bytes);
      refuse(checkRange(request));
      if (!isOpen || request.serializable)
        return permitted(request, callerOf(context), !request.serializable);
    }
    const answer = new LateRead(bytes, context, granted);
    member.awaitRound(answer);
    return answer;
  };
}

function* rangeSteps(member: Member, request: RangeRequest, task: SliceTask): Steps<UnaryResponse> {
  const writer = new RangeWriter(task.charge);
  const summary = yield* pinned(member, task, (view) => rangeInto(view, request, writer));
  return messageOf(writer.finish(member.header(summary.revision), summary));
}

/** The handlers of the KV service, by path. */
export function kvService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { maxTxnOps } = member.config;
  const { Range, Put, DeleteRange, Txn, Compact } = KVService.methods;

  const turns = new SharedTurns(member.clock);
  const header = new EncodedHeader(member);
  const checkWorkOf = (
    request: DeleteRangeRequest | TxnRequest,
    caller: Caller,
  ): void | Promise<void> =>
    member.slices.run(caller, (task) => pinned(member, task, (view) => checkWork(view, request)));
  const readOnly = (request: TxnRequest, caller: Caller): Promise<UnaryResponse> => {
    refuse(checkTxn(request, maxTxnOps));
    const steps = function* (task: SliceTask): Steps<UnaryResponse> {
      const sink = () => new RangeWriter(task.charge);
      const read = yield* pinned(member, task, (view) => readTxn(view, request, sink));
      return messageOf(encodeReadTxn(read, (revision) => member.header(revision)));
    };
    return member.read(caller, {
      access: { kind: "txn", request },
      linearizable: !isSerializableTxn(request),
      run: () => Promise.resolve(member.slices.run(caller, steps)),
    });
  };
  const permitDeletion = async (request: DeleteRangeRequest, caller: Caller) => {
    const permitted = member.permit(caller, { kind: "deleteRange", request });
    if (permitted !== undefined) await permitted;
    await checkWorkOf(request, caller);
  };
  const readingMuch = async (bytes: Uint8Array, request: TxnRequest, caller: Caller) => {
    const permitted = member.permit(caller, { kind: "txn", request });
    if (permitted !== undefined) await permitted;
    await (member.spaceRefusal("txn", request) ?? checkWorkOf(request, caller));
    const applied = await member.proposeFitting(caller, "txn", bytes, request);
    return encodeTxn({ turns, caller }, completed(member, applied));
  };
  // What is applied under a request's id is that very request.
  const putAnswer: WriteEncoder = (result) => {
    const applied = result as Applied<"put">;
    const { response } = applied;
    return response?.header === undefined || response.prevKv !== undefined
      ? PutResponse.encode(completed(member, applied))
      : header.at(response.header.revision);
  };
  const deleteAnswer: WriteEncoder = (applied, { caller }) =>
    encodeDeleteRange({ turns, caller }, completed(member, applied as Applied<"deleteRange">));
  const txnAnswer: WriteEncoder = (applied, { caller }) =>
    encodeTxn({ turns, caller }, completed(member, applied as Applied<"txn">));

  return new Map<string, UnaryHandler>([
    [Range.path, rangeHandler(member)],
    [
      Put.path,
      (bytes, context) => {
        const request = PutRequest.decode(bytes);
        const answer = new LateWrite(context, putAnswer);
        member.proposeFor(answer, answer.caller, "put", bytes, request);
        return answer;
      },
    ],
    [
      DeleteRange.path,
      (bytes, context) => {
        const request = DeleteRangeRequest.decode(bytes);
        const answer = new LateWrite(context, deleteAnswer);
        const propose = () =>
          member.proposeFor(answer, answer.caller, "deleteRange", bytes, request);
        if (!mayReadMuch(request)) propose();
        else permitDeletion(request, answer.caller).then(propose, (error) => answer.refused(error));
        return answer;
      },
    ],
    [
      Txn.path,
      (bytes, context) => {
        const request = decodeTxn(bytes, maxTxnOps);
        const caller = callerOf(context);
        if (isReadOnlyTxn(request)) return readOnly(request, caller);
        if (mayReadMuch(request)) return readingMuch(bytes, request, caller);
        const answer = new LateWrite(context, txnAnswer);
        member.proposeFor(answer, caller, "txn", bytes, request);
        return answer;
      },
    ],
    [
      Compact.path,
      async (bytes, context) => {
        const request = CompactionRequest.decode(bytes);
        const applied = await member.propose(callerOf(context), "compaction", bytes, request);
        if (request.physical && applied.error === undefined) await member.space.compacted();
        if (applied.error !== undefined) throw applied.error;
        return CompactionResponse.encode({
          header: member.header(member.store.mvcc.currentRevision),
        });
      },
    ],
  ]);
}

/**
 * The response of a write or a read that waits for the log: one object for each call, made when its
 * turn has come. Errors become statuses.
 */
abstract class LateAnswer extends Later<UnaryResponse> {
  readonly #context: CallContext;

  constructor(context: CallContext) {
    super();
    this.#context = context;
  }

  get caller(): Caller {
    return callerOf(this.#context);
  }

  get isGone(): boolean {
    return this.#context.cancelled;
  }

  refused(error: unknown): void {
    this.rejected(toStatusError(error));
  }

  /** Gives a response that is there, or comes. */
  protected give(response: UnaryResponse | Promise<UnaryResponse>): void {
    if (!(response instanceof Promise)) this.resolved(response);
    else
      response.then(
        (later) => this.resolved(later),
        (error: unknown) => this.refused(error),
      );
  }
}

/** How the response of a kind of writes is made. */
type WriteEncoder = (
  applied: AppliedEntry,
  answer: LateWrite,
) => UnaryResponse | Promise<UnaryResponse>;

/** The response of a write, made when its request is applied. */
class LateWrite extends LateAnswer implements Proposer {
  readonly #encode: WriteEncoder;

  constructor(context: CallContext, encode: WriteEncoder) {
    super(context);
    this.#encode = encode;
  }

  applied(result: AppliedEntry): void {
    try {
      this.give(this.#encode(result, this));
    } catch (error) {
      this.refused(error);
    }
  }
}

/** How the response of a kind of reads is made, when the store may be read for it. */
type ReadEncoder = (answer: LateRead) => UnaryResponse | Promise<UnaryResponse>;

/** The response of a linearizable read, made when its round is over. */
class LateRead extends LateAnswer implements Reader {
  readonly request: Uint8Array;
  readonly #encode: ReadEncoder;

  constructor(request: Uint8Array, context: CallContext, encode: ReadEncoder) {
    super(context);
    this.request = request;
    this.#encode = encode;
  }

  granted(): void {
    try {
      this.give(this.#encode(this));
    } catch (error) {
      this.refused(error);
    }
  }
}
