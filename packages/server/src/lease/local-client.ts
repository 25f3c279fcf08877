/**
 * What a service of this member needs of the others: the calls that Go's concurrency package makes
 * of its client.
 */
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  Event,
  Event_EventType,
  errorOf,
  KeyValue,
  LeaseGrantRequest,
  type LeaseGrantResponse,
  type RangeRequest,
  type RequestOp,
  type ResponseHeader,
  TxnRequest,
  type TxnResponse,
  WatchCreateRequest,
  WatchResponse,
} from "@quorate/proto";
import { type CallContext, LOCAL_CALL, type MessageBytes } from "@quorate/rpc";
import { checkDeleteRange, checkTxn, type RequestKind, rangeInto } from "@quorate/store";
import type { Member } from "../member/member.ts";
import { callerOf, LOCAL_CALLER, pinned } from "../reads/pinned.ts";
import type { Caller } from "../reads/slice-task.ts";

/** An event of a watch. */
export interface KeyEvent {
  readonly deleted: boolean;
  readonly kv: KeyValue;
}

/**
 * What came of a watch: events in order, or undefined when it is over for another reason than its
 * closing.
 */
export type OnEvents = (events: readonly KeyEvent[] | undefined, header: ResponseHeader) => void;

export class LocalClient {
  readonly #member: Member;
  readonly #caller: Caller;

  /** @param caller whose calls these are, for the fairness among reads */
  constructor(member: Member, caller: Caller = LOCAL_CALLER) {
    this.#member = member;
    this.#caller = caller;
  }

  /** The same for one call of a client's. */
  of(context: CallContext): LocalClient {
    // The call's one listener for its end belongs to whoever waits for a lock.
    const { client, connection } = callerOf(context);
    return new LocalClient(this.#member, {
      client,
      connection,
      cancelled: false,
      onCancel: () => {},
    });
  }

  /** Rejects with EtcdError. The header is complete. */
  async #propose<T extends { header: ResponseHeader | undefined }>(
    kind: RequestKind,
    request: Uint8Array,
  ): Promise<T> {
    const { error, response } = await this.#member.propose(kind, request);
    if (error !== undefined) throw error;
    const answer = response as unknown as T;
    answer.header = this.#member.header(answer.header?.revision ?? 0);
    return answer;
  }

  /**
   * Puts `then` through if `key` was created at `createRevision` (0: does not exist), else
   * `otherwise`.
   */
  txnIfCreatedAt(
    key: Uint8Array,
    createRevision: number,
    then: RequestOp[],
    otherwise: RequestOp[] = [],
  ): Promise<TxnResponse> {
    const request = TxnRequest.create({
      compare: [
        {
          result: Compare_CompareResult.EQUAL,
          target: Compare_CompareTarget.CREATE,
          key,
          targetUnion: { case: "createRevision", value: createRevision },
          rangeEnd: new Uint8Array(0),
        },
      ],
      success: then,
      failure: otherwise,
    });
    const wrong = checkTxn(request, this.#member.config.maxTxnOps);
    if (wrong !== undefined) return Promise.reject(errorOf(wrong));
    return this.#propose<TxnResponse>("txn", TxnRequest.encode(request));
  }

  async delete(key: Uint8Array): Promise<ResponseHeader> {
    const request = DeleteRangeRequest.create({ key });
    const wrong = checkDeleteRange(request);
    if (wrong !== undefined) throw errorOf(wrong);
    const { header } = await this.#propose("deleteRange", DeleteRangeRequest.encode(request));
    return header!;
  }

  async grant(ttlSeconds: number): Promise<bigint> {
    const ID = this.#member.newLeaseId();
    const TTL = Math.max(ttlSeconds, this.#member.minLeaseTtlSeconds);
    return (
      await this.#propose<LeaseGrantResponse>("leaseGrant", LeaseGrantRequest.encode({ ID, TTL }))
    ).ID;
  }

  /** A linearizable range; the header is complete. */
  async range(request: RangeRequest): Promise<{ header: ResponseHeader; kvs: KeyValue[] }> {
    await this.#member.linearizable();
    await this.#member.servable();
    const member = this.#member;
    const kvs: Uint8Array[] = [];
    const { revision } = await member.slices.run(this.#caller, (task) => {
      kvs.length = 0;
      return pinned(member, task, (view) => rangeInto(view, request, kvs));
    });
    return { header: member.header(revision), kvs: kvs.map((kv) => KeyValue.decode(kv)) };
  }

  /** Watches a range from a revision on, until the function that it gives is called. */
  watch(
    range: Pick<WatchCreateRequest, "key" | "rangeEnd" | "startRevision">,
    onEvents: OnEvents,
  ): () => void {
    let isOver = false;
    const tell = (message: MessageBytes) => {
      if (isOver) return;
      const { events, canceled, created, header } = WatchResponse.decode(joined(message));
      if (canceled) isOver = true;
      if (canceled || !created || events.length > 0)
        onEvents(canceled ? undefined : events.map(eventOf), header!);
      if (canceled) closeLater();
    };
    const stream = this.#member.watches.open({
      context: { ...LOCAL_CALL, path: "/etcdserverpb.Watch/Watch" },
      send: (message) => {
        tell(message);
        return true;
      },
      bufferedBytes: 0,
      end: () => {
        if (isOver) return;
        isOver = true;
        onEvents(undefined, this.#member.header(0));
      },
      pause: () => {},
      resume: () => {},
    });
    // Not amid the sending of its own events.
    const closeLater = () => this.#member.clock.endOfTurn(() => stream.close());
    stream.create(WatchCreateRequest.create(range));
    return () => {
      if (isOver) return;
      isOver = true;
      closeLater();
    };
  }
}

function eventOf(bytes: Uint8Array): KeyEvent {
  const { type, kv } = Event.decode(bytes);
  return { deleted: type === Event_EventType.DELETE, kv: KeyValue.decode(kv ?? new Uint8Array(0)) };
}

function joined(message: MessageBytes): Uint8Array {
  if (message instanceof Uint8Array) return message;
  const bytes = new Uint8Array(message.reduce((size, piece) => size + piece.length, 0));
  let at = 0;
  for (const piece of message) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
