/**
 * A ClusterClient over the members of the simulator: each call is one request to a member that the
 * connection likes, until that fails; each watch is a stream of its own, which goes on at another
 * member where it broke.
 */
import type { Random } from "@quorate/host";
import {
  CompactionRequest,
  Compare_CompareResult as CompareResult,
  Compare_CompareTarget as CompareTarget,
  Event,
  Event_EventType,
  errorNameOf,
  KeyValue,
  KVService,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseService,
  RangeRequest,
  RangeResponse,
  TxnRequest,
  TxnResponse,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { GuestDeps } from "@quorate/sim";
import {
  type ClusterClient,
  ClusterError,
  type ClusterPart,
  type ClusterRange,
  type ClusterRangeOptions,
  type ClusterWatch,
  type ClusterWatchOptions,
  type ClusterWatchResponse,
  type ClusterWrite,
  type ClusterWriteOptions,
} from "../../../src/storage/cluster-client.ts";
import { partsOf } from "../../../testing/memory-cluster.ts";
import type { Delays, Faults } from "../support/faults.ts";

const TIMEOUT_MS = 3000;
/** Pause before a broken watch goes on. */
const RESUME_MS = 100;

type SimNode = GuestDeps["nodes"][number];

export class SimConnection implements ClusterClient, Faults {
  readonly #deps: GuestDeps;
  readonly #random: Random;
  readonly #watches = new Set<SimWatch>();
  #node: SimNode;
  delays: Delays = { callMs: 0, eventMs: 0 };
  isDown = false;

  constructor(deps: GuestDeps, random: Random) {
    this.#deps = deps;
    this.#random = random;
    this.#node = this.anyNode();
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  anyNode(): SimNode {
    const { nodes } = this.#deps;
    return nodes[this.#random.below(nodes.length)];
  }

  async range(key: Uint8Array, options: ClusterRangeOptions): Promise<ClusterRange> {
    const { end, revision, limit, only } = options;
    const request = RangeRequest.encode({
      key,
      rangeEnd: end,
      revision,
      limit,
      keysOnly: only === "keys",
      countOnly: only === "count",
    });
    const bytes = await this.#call(KVService.methods.Range.path, request, true);
    const { kvs, count, header } = RangeResponse.decode(bytes);
    const records = kvs.map((kv) => KeyValue.decode(kv));
    return { records, count, revision: header!.revision };
  }

  rangeParts(
    key: Uint8Array,
    options: ClusterRangeOptions,
  ): AsyncGenerator<ClusterPart, undefined> {
    return partsOf(this, key, options);
  }

  async modRevisions(keys: readonly Uint8Array[]): Promise<readonly number[]> {
    const success = keys.map((key) => {
      const range = { key, keysOnly: true };
      return { request: { case: "requestRange", value: range } };
    });
    const txn = { compare: [], success, failure: [] };
    const encoded = TxnRequest.encode(txn as unknown as Parameters<typeof TxnRequest.encode>[0]);
    const { responses } = TxnResponse.decode(
      await this.#call(KVService.methods.Txn.path, encoded, true),
    );
    return responses.map(({ response }) => {
      const kv = response?.case === "responseRange" ? response.value.kvs[0] : undefined;
      return kv === undefined ? 0 : KeyValue.decode(kv).modRevision;
    });
  }

  put(
    key: Uint8Array,
    value: Uint8Array,
    lease: bigint | "keep",
    options: ClusterWriteOptions,
  ): Promise<ClusterWrite> {
    const leased = lease === "keep" ? { ignoreLease: true } : { lease };
    const requestPut = { key, value, ...leased };
    return this.#write(key, { case: "requestPut", value: requestPut }, options);
  }

  delete(key: Uint8Array, options: ClusterWriteOptions): Promise<ClusterWrite> {
    return this.#write(key, { case: "requestDeleteRange", value: { key } }, options);
  }

  async #write(
    key: Uint8Array,
    request: unknown,
    { expectedRevision, readOnFailure }: ClusterWriteOptions,
  ): Promise<ClusterWrite> {
    const compare = {
      key,
      result: CompareResult.EQUAL,
      target: CompareTarget.MOD,
      targetUnion: { case: "modRevision", value: expectedRevision },
    };
    const failure = readOnFailure ? [{ request: { case: "requestRange", value: { key } } }] : [];
    const txn = { compare: [compare], success: [{ request }], failure };
    const encoded = TxnRequest.encode(txn as unknown as Parameters<typeof TxnRequest.encode>[0]);
    const bytes = await this.#call(KVService.methods.Txn.path, encoded, false);
    const { succeeded, header, responses } = TxnResponse.decode(bytes);
    const response = responses[0]?.response;
    const kv = response?.case === "responseRange" ? response.value.kvs[0] : undefined;
    const present = kv === undefined ? undefined : KeyValue.decode(kv);
    return { succeeded, revision: header!.revision, present };
  }

  async grantLease(ttlSeconds: number): Promise<bigint> {
    const request = LeaseGrantRequest.encode({ TTL: ttlSeconds });
    const bytes = await this.#call(LeaseService.methods.LeaseGrant.path, request, false);
    return LeaseGrantResponse.decode(bytes).ID;
  }

  async compact(revision: number): Promise<void> {
    const request = CompactionRequest.encode({ revision });
    await this.#call(KVService.methods.Compact.path, request, false).catch(() => {});
  }

  watch(key: Uint8Array, options: ClusterWatchOptions): ClusterWatch {
    const watch = new SimWatch(this, this.#deps, key, options, () => this.#watches.delete(watch));
    this.#watches.add(watch);
    return watch;
  }

  loseConnections(): void {}

  compacted(): void {}

  /** @param isRead a call that fails has certainly changed nothing */
  async #call(path: string, request: Uint8Array, isRead: boolean): Promise<Uint8Array> {
    const reply = await this.#deps.network.exchange(this.#node, path, request, TIMEOUT_MS);
    if (reply.bytes !== undefined) return reply.bytes;
    this.#node = this.anyNode();
    const { error = "no response", unsent } = reply;
    const name = errorNameOf(error);
    if (name === "Compacted") throw new ClusterError("Compacted", error);
    if (name === "FutureRev") throw new ClusterError("FutureRevision", error);
    throw new ClusterError(isRead || unsent ? "Unavailable" : "Timeout", error);
  }
}

class SimWatch implements ClusterWatch {
  readonly #connection: SimConnection;
  readonly #deps: GuestDeps;
  readonly #key: Uint8Array;
  readonly #options: ClusterWatchOptions;
  readonly #closed: () => void;
  readonly #responses: ClusterWatchResponse[] = [];
  #next: number;
  #wake: (() => void) | undefined;
  #error: Error | undefined;
  #isOver = false;
  #stream: ReturnType<GuestDeps["network"]["open"]> | undefined;
  #streams = 0;

  constructor(
    connection: SimConnection,
    deps: GuestDeps,
    key: Uint8Array,
    options: ClusterWatchOptions,
    closed: () => void,
  ) {
    this.#connection = connection;
    this.#deps = deps;
    this.#key = key;
    this.#options = options;
    this.#closed = closed;
    this.#next = options.revision;
    this.#open();
  }

  requestProgress(): void {
    this.#send({ case: "progressRequest", value: {} });
  }

  cancel(): void {
    this.#end(undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ClusterWatchResponse, undefined> {
    try {
      for (;;) {
        const response = this.#responses.shift();
        if (response !== undefined) yield* this.#oneByOne(response);
        else if (this.#error !== undefined) throw this.#error;
        else if (this.#isOver) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      this.#end(undefined);
    }
  }

  /** The window of the tests is so small that a whole response could pass it in one turn. */
  async *#oneByOne({ events, revision }: ClusterWatchResponse) {
    if (events.length === 0) yield { events, revision };
    for (const event of events) {
      yield { events: [event], revision: event.record.modRevision };
      await this.#deps.scheduler.delay(1);
    }
  }

  #open(): void {
    if (this.#isOver) return;
    const number = ++this.#streams;
    const isPresent = () => number === this.#streams && !this.#isOver;
    const { network, scheduler } = this.#deps;
    const { path } = WatchService.methods.Watch;
    this.#stream = network.open(
      this.#connection.anyNode(),
      path,
      {
        message: (bytes) => {
          if (isPresent()) this.#heard(WatchResponse.decode(bytes));
        },
        ended: () => {
          if (isPresent()) scheduler.after(RESUME_MS, () => isPresent() && this.#open());
        },
      },
      { needsLeader: true },
    );
    const value = {
      key: this.#key,
      rangeEnd: this.#options.end,
      startRevision: this.#next,
      prevKv: true,
      progressNotify: this.#options.progressNotify,
    };
    this.#send({ case: "createRequest", value });
  }

  #send(requestUnion: unknown): void {
    const request = { requestUnion } as Parameters<typeof WatchRequest.encode>[0];
    this.#stream?.send(WatchRequest.encode(request));
  }

  #heard({ canceled, compactRevision, events, header, created }: WatchResponse): void {
    if (canceled && compactRevision > 0) {
      this.#end(new ClusterError("Compacted", "required revision has been compacted"));
      return;
    }
    if (canceled) {
      this.#stream?.close();
      this.#open();
      return;
    }
    if (created) return;
    const revision = header!.revision;
    const decoded = events.map(eventOf);
    const last = decoded.at(-1)?.record.modRevision ?? revision;
    this.#next = Math.max(this.#next, last + 1);
    this.#responses.push({ events: decoded, revision });
    this.#wake?.();
  }

  #end(error: Error | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#stream?.close();
    this.#closed();
    this.#wake?.();
  }
}

function eventOf(bytes: Uint8Array): ClusterWatchResponse["events"][number] {
  const { type, kv, prevKv } = Event.decode(bytes);
  return {
    type: type === Event_EventType.DELETE ? "delete" : "put",
    record: KeyValue.decode(kv!),
    previous: prevKv === undefined ? undefined : KeyValue.decode(prevKv),
  };
}
