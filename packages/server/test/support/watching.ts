/**
 * Watch without sockets: a stream call whose client reads when the test says so, and a store with a
 * hub on a manual clock.
 */
import assert from "node:assert/strict";
import { SeededRandom } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import type { WatchStream } from "@quorate/member";
import { type StreamClient, WatchHub, type WatchLimits } from "@quorate/member/testing";
import {
  Event,
  fromLatin1,
  KeyValue,
  raftpb,
  toLatin1,
  type WatchCreateRequest,
  WatchRequest,
  WatchResponse,
} from "@quorate/proto";
import {
  type CommonMessage,
  clientOf,
  type MessageBytes,
  messageSize,
  type Status,
  type StreamCall,
  type StreamListener,
} from "@quorate/rpc";
import { keyRange, runSteps, Store } from "@quorate/store";

/** So small that every bound is met all the time. */
export const TIGHT: WatchLimits = {
  maxStreamBacklogBytes: 600,
  maxTotalBacklogBytes: 1500,
  maxResponseRevisions: 3,
  maxResponseBytes: 200,
  maxRecentEvents: 8,
  maxRecentBytes: 2000,
  maxSliceEvents: 5,
  maxWatchersAtOnce: 1,
  maxWatchesTotalBytes: 100_000_000,
  maxWatchesClientBytes: 100_000_000,
  maxContestTotalBytes: 100_000_000,
  maxContestClientBytes: 100_000_000,
};

/**
 * A call whose messages wait until `read`. Beyond the budget `send` returns false, as an
 * engine's would.
 */
export class MemoryCall implements StreamCall {
  readonly context: StreamCall["context"];
  readonly budgetBytes: number;
  /** Set by who starts the handler. */
  listener: StreamListener = {};
  bufferedBytes = 0;
  isPaused = false;
  status: Status | undefined;
  /** The pieces of the message that was sent last. */
  lastPieces: readonly Uint8Array[] = [];
  /** Undefined for a call of an engine in the same thread. */
  readonly sendCommon: StreamCall["sendCommon"];
  readonly #waiting: Uint8Array[] = [];
  #isOverBudget = false;
  readonly #held: Uint8Array[] = [];

  constructor(
    options: {
      budgetBytes?: number;
      metadata?: Record<string, string>;
      address?: string;
      /** What it is sent may be shared with other calls. */
      isSharing?: boolean;
    } = {},
  ) {
    this.sendCommon = options.isSharing === true ? this.#sendCommon : undefined;
    this.budgetBytes = options.budgetBytes ?? 1024 * 1024;
    this.context = {
      path: "/etcdserverpb.Watch/Watch",
      metadata: (key) => options.metadata?.[key],
      deadlineMs: undefined,
      peerAddress: options.address ?? "127.0.0.1:1",
      peerCommonName: undefined,
      trace: undefined,
      cancelled: false,
      onCancel() {},
    };
  }

  send(message: MessageBytes): boolean {
    assert.equal(this.status, undefined, "nothing is sent after the end");
    const pieces = message instanceof Uint8Array ? [message] : message;
    this.lastPieces = pieces;
    const bytes = new Uint8Array(Buffer.concat(pieces));
    this.#waiting.push(bytes);
    this.bufferedBytes += bytes.length;
    if (this.bufferedBytes > this.budgetBytes) this.#isOverBudget = true;
    return !this.#isOverBudget;
  }

  readonly #sendCommon = (message: CommonMessage, own: Uint8Array): boolean => {
    const pieces = [message.before, own, ...message.after];
    assert.equal(message.sizeBytes + own.length, messageSize(pieces));
    return this.send(pieces);
  };

  end(status: Status = { code: 0, message: "" }): void {
    this.status = status;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    if (!this.isPaused || this.status !== undefined) return;
    this.isPaused = false;
    for (const bytes of this.#held.splice(0)) this.listener.message?.(bytes);
  }

  /** The client takes up to `count` messages. */
  read(count = Number.POSITIVE_INFINITY): WatchResponse[] {
    const taken = this.#waiting.splice(0, count);
    for (const { length } of taken) this.bufferedBytes -= length;
    if (
      this.status === undefined &&
      this.#isOverBudget &&
      this.bufferedBytes * 2 <= this.budgetBytes
    ) {
      this.#isOverBudget = false;
      this.listener.drained?.();
    }
    return taken.map((bytes) => WatchResponse.decode(bytes));
  }

  /**
   * The client sends a request. As with an engine, the listener hears nothing of it once the call
   * has ended.
   */
  request(requestUnion: WatchRequest["requestUnion"]): void {
    const bytes = WatchRequest.encode({ requestUnion });
    if (this.isPaused) this.#held.push(bytes);
    else if (this.status === undefined) this.listener.message?.(bytes);
  }

  create(request: Partial<WatchCreateRequest>): void {
    this.request({ case: "createRequest", value: request as WatchCreateRequest });
  }

  cancel(watchId: number): void {
    this.request({ case: "cancelRequest", value: { watchId } });
  }

  progress(): void {
    this.request({ case: "progressRequest", value: {} });
  }
}

/** A store in memory, its hub, and calls on it. */
export class WatchBench {
  readonly clock = new ManualClock();
  readonly disk = new MemoryDisk({ clock: this.clock });
  readonly keyspaces = new MemoryKeyspaceOpener(this.disk, {
    clock: this.clock,
    writeDelayMs: () => 1,
  });
  readonly hub: WatchHub;
  readonly failures: unknown[] = [];
  events = 0;
  store!: Store;
  /** Small ones make deletions of a few keys too large to be sent at once. */
  stepKeys: number | undefined;

  constructor(
    limits?: WatchLimits,
    options: { progressNotifyIntervalMs?: number; maxRequestBytes?: number } = {},
  ) {
    this.hub = new WatchHub(
      {
        progressNotifyIntervalMs: options.progressNotifyIntervalMs ?? 600_000,
        maxRequestBytes: options.maxRequestBytes ?? 1024 * 1024,
        ...(limits !== undefined && { limits }),
      },
      {
        clock: this.clock,
        random: new SeededRandom(1n),
        clusterId: 1n,
        memberId: 2n,
        raft: { term: 3 },
        events: { add: (amount) => (this.events += amount) },
        lifetime: { end: (error) => void this.failures.push(error) },
      },
    );
  }

  async open(): Promise<this> {
    this.store = await this.settled(
      Store.open(this.keyspaces, "/store", { stepKeys: this.stepKeys }),
    );
    // Transactions here do not come from a log; the store wants a position beside its data.
    if (this.store.position.index === 0)
      this.store.apply({
        index: 1,
        term: 1,
        type: raftpb.EntryType.EntryNormal,
        data: new Uint8Array(0),
      });
    this.hub.feed.attach(this.store.mvcc);
    return this;
  }

  /** The store is closed and opened again, as when a received one takes its place. */
  async exchange(between: () => void = () => {}): Promise<void> {
    await this.settled(this.hub.feed.detach());
    between();
    await this.settled(this.store.close({ flush: true }));
    await this.open();
  }

  /** Why the client of a stream may not watch a range. */
  forbids: StreamClient["forbids"] = () => undefined;

  call(options?: ConstructorParameters<typeof MemoryCall>[0]): {
    call: MemoryCall;
    stream: WatchStream;
  } {
    const call = new MemoryCall(options);
    const stream = this.hub.open(call, {
      client: clientOf(call.context),
      ready: () => undefined,
      forbids: (range) => this.forbids(range),
      revoked: (range) => this.forbids(range),
    });
    call.listener = {
      message: (bytes) => {
        const union = WatchRequest.decode(bytes).requestUnion!;
        if (union.case === "createRequest") stream.create(union.value);
        else if (union.case === "cancelRequest") stream.cancel(union.value.watchId);
        else stream.requestProgress();
      },
      drained: () => stream.drained(),
      cancelled: () => stream.close(),
    };
    return { call, stream };
  }

  /** One transaction: a value puts, undefined deletes. Returns the revision. */
  write(changes: Readonly<Record<string, string | undefined>>): number {
    const txn = this.stepKeys === undefined ? this.store.mvcc.begin() : this.store.mvcc.beginLong();
    for (const [key, value] of Object.entries(changes)) {
      if (value === undefined) txn.delete(key);
      else txn.put(fromLatin1(key), key, fromLatin1(value), 0n);
    }
    return txn.commit();
  }

  deleteRange(from: string, to: string): number {
    const txn = this.store.mvcc.beginLong();
    runSteps(txn.deleteRange(keyRange(fromLatin1(from), fromLatin1(to))));
    return txn.commit();
  }

  /** Lets everything happen that needs no more than 10 ms. */
  async run(ms = 10): Promise<void> {
    await this.clock.advanceAsync(ms);
    assert.deepEqual(this.failures, []);
  }

  async settled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    promise.then(
      () => (isSettled = true),
      () => (isSettled = true),
    );
    while (!isSettled) await this.clock.advanceAsync(1);
    return promise;
  }
}

/**
 * An event as text: "put key=value@revision" or "delete key@revision", and "<before" where there is
 * a previous value.
 */
export function eventText(bytes: Uint8Array): string {
  const { type, kv: kvBytes, prevKv } = Event.decode(bytes);
  const kv = KeyValue.decode(kvBytes!);
  const before = prevKv === undefined ? "" : `<${toLatin1(KeyValue.decode(prevKv).value)}`;
  const what =
    type === 0 ? `put ${toLatin1(kv.key)}=${toLatin1(kv.value)}` : `delete ${toLatin1(kv.key)}`;
  return `${what}@${kv.modRevision}${before}`;
}

export function revisionOf(bytes: Uint8Array): number {
  return KeyValue.decode(Event.decode(bytes).kv!).modRevision;
}

/** The events of responses as text. */
export function textsOf(responses: readonly WatchResponse[]): string[] {
  return responses.flatMap(({ events }) => events.map(eventText));
}
