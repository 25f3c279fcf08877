/**
 * A cluster in memory: revisions, conditional writes, history with compaction, watches and leases,
 * as EtcdStore sees them. Its time is the test's: `advance` lets leases expire.
 */
import { compare, fromLatin1, toLatin1 } from "@quorate/proto";
import {
  type ClusterClient,
  ClusterError,
  type ClusterEvent,
  type ClusterPart,
  type ClusterRange,
  type ClusterRangeOptions,
  type ClusterRecord,
  type ClusterWatch,
  type ClusterWatchOptions,
  type ClusterWatchResponse,
  type ClusterWrite,
  type ClusterWriteOptions,
} from "../src/storage/cluster-client.ts";
import { endOfKey } from "../src/storage/etcd-values.ts";

/** Events that a watch collects into one response. */
const EVENTS_PER_RESPONSE = 100;

interface Lease {
  readonly endMs: number;
  readonly keys: Set<string>;
}

/** Keys of a part. */
export const PART_KEYS = 500;

/** A range in parts, each of which is a request of its own, so that faults come in between. */
export async function* partsOf(
  cluster: Pick<ClusterClient, "range">,
  key: Uint8Array,
  options: ClusterRangeOptions,
): AsyncGenerator<ClusterPart, undefined> {
  let start = key;
  let sent = 0;
  let first: ClusterRange | undefined;
  for (;;) {
    const left = options.limit > 0 ? options.limit - sent : PART_KEYS;
    const revision = options.revision || (first?.revision ?? 0);
    const part = { ...options, revision, limit: Math.min(left, PART_KEYS) };
    const { records, ...end } = await cluster.range(start, part);
    first ??= { records, ...end };
    sent += records.length;
    const isLast = records.length === 0 || sent === first.count || sent === options.limit;
    yield { records, end: isLast ? { count: first.count, revision: first.revision } : undefined };
    if (isLast) return;
    start = endOfKey(records.at(-1)!.key);
  }
}

export class MemoryCluster implements ClusterClient {
  /** What was asked of it, newest last; for tests that count requests. */
  readonly requests: { readonly kind: string; readonly key: string; readonly limit: number }[] = [];
  /** Called before each request; what it throws is the request's error. */
  onRequest: (kind: string) => void | Promise<void> = () => {};
  #revision = 1;
  #compacted = 0;
  #nowMs = 0;
  #leases = 0n;
  /** All changes since the beginning; the n-th has revision n + 2. */
  readonly #events: ClusterEvent[] = [];
  readonly #records = new Map<string, ClusterRecord>();
  readonly #leaseTable = new Map<bigint, Lease>();
  readonly #watches = new Set<MemoryWatch>();

  get revision(): number {
    return this.#revision;
  }

  get compactRevision(): number {
    return this.#compacted;
  }

  async range(start: Uint8Array, options: ClusterRangeOptions): Promise<ClusterRange> {
    await this.#request("range", start, options.limit);
    const { end, revision, limit, only } = options;
    if (revision > this.#revision)
      throw new ClusterError("FutureRevision", "required revision is a future revision");
    if (revision > 0 && revision < this.#compacted)
      throw new ClusterError("Compacted", "required revision has been compacted");
    const state =
      revision === 0 || revision === this.#revision ? this.#records : this.#stateAt(revision);
    const found = [...state.values()]
      .filter(({ key }) => compare(key, start) >= 0 && compare(key, end) < 0)
      .sort((a, b) => compare(a.key, b.key));
    const records = only === "count" ? [] : limit > 0 ? found.slice(0, limit) : found;
    return { records, count: found.length, revision: this.#revision };
  }

  rangeParts(
    key: Uint8Array,
    options: ClusterRangeOptions,
  ): AsyncGenerator<ClusterPart, undefined> {
    return partsOf(this, key, options);
  }

  async modRevisions(keys: readonly Uint8Array[]): Promise<readonly number[]> {
    await this.#request("modRevisions", keys[0] ?? new Uint8Array());
    return keys.map((key) => this.#records.get(toLatin1(key))?.modRevision ?? 0);
  }

  async put(
    key: Uint8Array,
    value: Uint8Array,
    lease: bigint | "keep",
    options: ClusterWriteOptions,
  ): Promise<ClusterWrite> {
    await this.#request("put", key);
    const present = this.#records.get(toLatin1(key));
    if ((present?.modRevision ?? 0) !== options.expectedRevision)
      return this.#failed(present, options);
    const leaseId = lease === "keep" ? (present?.lease ?? 0n) : lease;
    if (leaseId !== 0n && !this.#leaseTable.has(leaseId))
      throw new Error("etcdserver: requested lease not found");
    this.write(key, value, leaseId);
    return { succeeded: true, revision: this.#revision, present: undefined };
  }

  async delete(key: Uint8Array, options: ClusterWriteOptions): Promise<ClusterWrite> {
    await this.#request("delete", key);
    const present = this.#records.get(toLatin1(key));
    if ((present?.modRevision ?? 0) !== options.expectedRevision)
      return this.#failed(present, options);
    if (present !== undefined) this.remove(key);
    return { succeeded: true, revision: this.#revision, present: undefined };
  }

  watch(key: Uint8Array, options: ClusterWatchOptions): ClusterWatch {
    const watch = new MemoryWatch(key, options, {
      revision: () => this.#revision,
      compacted: () => this.#compacted,
      events: this.#events,
      closed: () => this.#watches.delete(watch),
    });
    this.#watches.add(watch);
    return watch;
  }

  async grantLease(ttlSeconds: number): Promise<bigint> {
    await this.#request("lease", new Uint8Array(0));
    const id = ++this.#leases;
    this.#leaseTable.set(id, { endMs: this.#nowMs + ttlSeconds * 1000, keys: new Set() });
    return id;
  }

  /** Puts without a condition, as another program would. */
  write(key: Uint8Array, value: Uint8Array, lease = 0n): void {
    const text = toLatin1(key);
    const previous = this.#records.get(text);
    this.#revision++;
    const record: ClusterRecord = {
      key: key.slice(),
      value: value.slice(),
      createRevision: previous?.createRevision ?? this.#revision,
      modRevision: this.#revision,
      lease,
    };
    this.#detach(text, previous);
    this.#leaseTable.get(lease)?.keys.add(text);
    this.#records.set(text, record);
    this.#add({ type: "put", record, previous });
  }

  /** Deletes without a condition. */
  remove(key: Uint8Array): void {
    const text = toLatin1(key);
    const previous = this.#records.get(text);
    if (previous === undefined) return;
    this.#revision++;
    this.#detach(text, previous);
    this.#records.delete(text);
    const record = {
      ...previous,
      value: new Uint8Array(0),
      createRevision: 0,
      modRevision: this.#revision,
    };
    this.#add({ type: "delete", record, previous });
  }

  /** History before this revision is gone. */
  async compact(revision: number): Promise<void> {
    this.#compacted = Math.max(this.#compacted, revision);
    for (const watch of this.#watches) watch.wake();
  }

  /** Lets time pass; keys of expired leases are deleted. */
  advance(ms: number): void {
    this.#nowMs += ms;
    for (const [id, lease] of this.#leaseTable) {
      if (lease.endMs > this.#nowMs) continue;
      this.#leaseTable.delete(id);
      for (const key of lease.keys) this.remove(fromLatin1(key));
    }
  }

  /** Ends all watches with an error, as if every member had refused them. */
  breakWatches(error: Error): void {
    for (const watch of [...this.#watches]) watch.fail(error);
  }

  async #request(kind: string, key: Uint8Array, limit = 0): Promise<void> {
    this.requests.push({ kind, key: toLatin1(key), limit });
    await this.onRequest(kind);
  }

  #failed(present: ClusterRecord | undefined, options: ClusterWriteOptions): ClusterWrite {
    return {
      succeeded: false,
      revision: this.#revision,
      present: options.readOnFailure ? present : undefined,
    };
  }

  #detach(key: string, previous: ClusterRecord | undefined): void {
    if (previous !== undefined) this.#leaseTable.get(previous.lease)?.keys.delete(key);
  }

  #add(event: ClusterEvent): void {
    this.#events.push(event);
    for (const watch of this.#watches) watch.wake();
  }

  #stateAt(revision: number): Map<string, ClusterRecord> {
    const state = new Map<string, ClusterRecord>();
    for (const { type, record } of this.#events.slice(0, revision - 1)) {
      if (type === "put") state.set(toLatin1(record.key), record);
      else state.delete(toLatin1(record.key));
    }
    return state;
  }
}

interface WatchSource {
  readonly events: readonly ClusterEvent[];
  revision(): number;
  compacted(): number;
  closed(): void;
}

class MemoryWatch implements ClusterWatch {
  readonly #key: Uint8Array;
  readonly #end: Uint8Array | undefined;
  readonly #source: WatchSource;
  #next: number;
  #wantsProgress = false;
  #isCancelled = false;
  #error: Error | undefined;
  #wake: () => void = () => {};

  constructor(key: Uint8Array, options: ClusterWatchOptions, source: WatchSource) {
    this.#key = key;
    this.#end = options.end;
    this.#next = options.revision;
    this.#source = source;
  }

  requestProgress(): void {
    this.#wantsProgress = true;
    this.wake();
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#source.closed();
    this.wake();
  }

  fail(error: Error): void {
    this.#error = error;
    this.#source.closed();
    this.wake();
  }

  /** There may be something to deliver. */
  wake(): void {
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ClusterWatchResponse, undefined> {
    for (;;) {
      if (this.#isCancelled) return;
      if (this.#error !== undefined) throw this.#error;
      if (this.#next < this.#source.compacted()) {
        this.#source.closed();
        throw new ClusterError("Compacted", "required revision has been compacted");
      }
      const events = this.#takeEvents();
      if (events.length > 0) yield { events, revision: events.at(-1)!.record.modRevision };
      else if (this.#wantsProgress && this.#next <= this.#source.revision() + 1) {
        this.#wantsProgress = false;
        yield { events: [], revision: this.#source.revision() };
      } else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  #takeEvents(): ClusterEvent[] {
    const taken: ClusterEvent[] = [];
    const last = this.#source.revision();
    while (this.#next <= last && taken.length < EVENTS_PER_RESPONSE) {
      const event = this.#source.events[this.#next - 2];
      this.#next++;
      if (event !== undefined && this.#isWatched(event.record.key)) taken.push(event);
    }
    return taken;
  }

  #isWatched(key: Uint8Array): boolean {
    if (this.#end === undefined) return compare(key, this.#key) === 0;
    return compare(key, this.#key) >= 0 && compare(key, this.#end) < 0;
  }
}
