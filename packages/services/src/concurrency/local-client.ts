/**
 * What a service of this member needs of the others: the calls that Go's concurrency package makes
 * of its client.
 */
import { asMembersOwn, type Caller, type Member, pinned, uncancelled } from "@quorate/member";
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  defined,
  Event,
  Event_EventType,
  KeyValue,
  LeaseGrantRequest,
  type RangeRequest,
  type RequestOp,
  type ResponseHeader,
  TxnRequest,
  type TxnResponse,
  WatchCreateRequest,
  WatchResponse,
} from "@quorate/proto";
import { joinMessage, LOCAL_CALL, type MessageBytes, type StreamCall } from "@quorate/rpc";
import { rangeInto } from "@quorate/store";
import { completed } from "../calls/results.ts";

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

  /**
   * @param caller the caller of the service's call. Its cancellation is left to the service, which
   *   has to take a key back when a caller gives up.
   */
  constructor(member: Member, caller: Caller) {
    this.#member = member;
    this.#caller = uncancelled(caller);
  }

  /**
   * Puts `then` through if `key` was created at `createRevision` (0: does not exist), else
   * `otherwise`.
   */
  async txnIfCreatedAt(
    key: Uint8Array,
    createRevision: number,
    then: RequestOp[],
    otherwise: RequestOp[] = [],
  ): Promise<TxnResponse & { header: ResponseHeader }> {
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
    const bytes = TxnRequest.encode(request);
    return completed(this.#member, await this.#member.propose(this.#caller, "txn", bytes, request));
  }

  async delete(key: Uint8Array): Promise<ResponseHeader> {
    const request = DeleteRangeRequest.create({ key });
    const bytes = DeleteRangeRequest.encode(request);
    const applied = await this.#member.propose(this.#caller, "deleteRange", bytes, request);
    return completed(this.#member, applied).header;
  }

  async grant(ttlSeconds: number): Promise<bigint> {
    const ID = this.#member.newLeaseId();
    const TTL = Math.max(ttlSeconds, this.#member.minLeaseTtlSeconds);
    const request = LeaseGrantRequest.create({ ID, TTL });
    const bytes = LeaseGrantRequest.encode(request);
    const applied = await this.#member.propose(this.#caller, "leaseGrant", bytes, request);
    return completed(this.#member, applied).ID;
  }

  /** A linearizable range; the header is complete. */
  async range(request: RangeRequest): Promise<{ header: ResponseHeader; kvs: KeyValue[] }> {
    const member = this.#member;
    const kvs: Uint8Array[] = [];
    const { revision } = await member.read(this.#caller, {
      access: { kind: "range", request },
      linearizable: true,
      run: () =>
        member.slices.run(this.#caller, (task) => {
          kvs.length = 0;
          return pinned(member, task, (view) => rangeInto(view, request, kvs));
        }),
    });
    return { header: member.header(revision), kvs: kvs.map((kv) => KeyValue.decode(kv)) };
  }

  /** Watches a range from a revision on, until the function that it returns is called. */
  watch(
    range: Pick<WatchCreateRequest, "key" | "rangeEnd" | "startRevision">,
    onEvents: OnEvents,
  ): () => void {
    let isOver = false;
    const deliver = (message: MessageBytes) => {
      if (isOver) return;
      const { events, canceled, created, header } = WatchResponse.decode(joinMessage(message));
      if (canceled) isOver = true;
      if (canceled || !created || events.length > 0)
        onEvents(canceled ? undefined : events.map(eventOf), defined(header, "the header"));
      if (canceled) closeLater();
    };
    const call: StreamCall = {
      context: { ...LOCAL_CALL, path: "/etcdserverpb.Watch/Watch" },
      send: (message) => {
        deliver(message);
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
    };
    const stream = this.#member.watch(asMembersOwn(this.#caller), call);
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
