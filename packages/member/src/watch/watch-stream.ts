/**
 * The watches of one client stream: ids, answers, and what waits to be sent.
 *
 * Events are queued while a turn lasts and leave at its end, those of one watch in one response.
 * What is queued and what the engine has not sent yet is bounded: an event beyond the budget is not
 * queued, and its watcher is parked until the client has read on.
 */
import type { Clock, Timer } from "@quorate/host";
import {
  errorOf,
  type ResponseHeader,
  type WatchCreateRequest,
  WatchResponse,
} from "@quorate/proto";
import type { Status, StreamCall } from "@quorate/rpc";
import { type KeyRange, keyRange } from "@quorate/store";
import type { ClientBudget } from "./client-budget.ts";
import {
  bytesOf,
  type EventList,
  type EventLists,
  fragments,
  idField,
  type PrevKv,
  responsePieces,
  type WatchEvent,
} from "./event.ts";
import { WATCH_BYTES, WATCH_KEY_FACTOR, type WatchLimits } from "./limits.ts";
import { checkPermission, mayTake, type StreamClient, Watcher } from "./watcher.ts";

/** What a response and a queue cost beside events, and an event beside its bytes. */
const RESPONSE_BYTES = 64;
const REFERENCE_BYTES = 8;

/**
 * The watch id that stands for no watch, or for all of a stream (etcd: clientv3.InvalidWatchID).
 */
const NO_WATCH_ID = -1;
const ONE_ZERO = new Uint8Array(1);

export type StreamWatcher = Watcher<WatchStream>;

/** What all streams share. */
export interface StreamOwner {
  readonly clock: Clock;
  readonly limits: WatchLimits;
  /** Most bytes of a response that a client wants in fragments. */
  readonly maxFragmentBytes: number;
  /** Bytes that wait in all streams. */
  backlogBytes: number;
  /** Events that wait in all streams. */
  pendingEvents: number;
  /** Changes of permissions so far. */
  readonly permissions: number;
  /** What watches cost. */
  readonly watchBudget: ClientBudget;
  header(revision: number): ResponseHeader;
  headerField(revision: number): Uint8Array;
  /** How long from one progress notification of a stream to the next. */
  progressPeriodMs(): number;
  /** Events have been sent. */
  delivered(events: number): void;
  closed(stream: WatchStream): void;
}

/** Where the events of a stream come from. */
export interface StreamFeed {
  /** The store's revision. */
  readonly revision: number;
  readonly lists: EventLists;
  readonly prevKv: PrevKv;
  /** Takes a new watcher: synced, or to catch up. */
  add(watcher: StreamWatcher, isSynced: boolean): void;
  /** Takes a watcher out that ends. */
  remove(watcher: StreamWatcher): void;
  /** Offers what changes have brought to synced watchers and they have not been offered. */
  settle(): void;
  /** Parked watchers may catch up. */
  unpark(watchers: Iterable<StreamWatcher>): void;
  /** Something waits for `flush`. */
  touched(stream: WatchStream): void;
  /** Something waits for `flush` that cannot be sent before a pass has read on. */
  heldBack(stream: WatchStream): void;
}

export class WatchStream {
  readonly #call: StreamCall;
  readonly #owner: StreamOwner;
  readonly #feed: StreamFeed;
  readonly #watchers = new Map<StreamWatcher["id"], StreamWatcher>();
  /** Watchers with a queue, in the order of their first event. */
  #ready: StreamWatcher[] = [];
  #queuedBytes = 0;
  /** The owner knows that something waits for `flush`. */
  #isTouched = false;
  readonly #parked = new Set<StreamWatcher>();
  /** What of the owner's backlogBytes is this stream's. */
  #accountedBytes = 0;
  /** The engine holds more than its budget. */
  #blocked = false;
  #nextId = 0;
  #progressTimer: Timer | undefined;
  #closed = false;
  /** Whose the watches are; empty for this member's own, which are bounded where they are made. */
  readonly #client: StreamClient;
  /** Taken from the owner's watchBudget. */
  #watchBytes = 0;

  constructor(call: StreamCall, client: StreamClient, owner: StreamOwner, feed: StreamFeed) {
    this.#call = call;
    this.#owner = owner;
    this.#feed = feed;
    this.#client = client;
  }

  /**
   * All watchers, those too that were ended by a compaction and not yet cancelled by the client.
   */
  get watchers(): Iterable<StreamWatcher> {
    return this.#watchers.values();
  }

  /** Something waits for `flush`, and nothing that a pass has to read first. */
  get isTouched(): boolean {
    return this.#isTouched;
  }

  /** Bytes that are queued or wait in the engine. */
  get backlogBytes(): number {
    return this.#queuedBytes + this.#call.bufferedBytes;
  }

  // --- The client's requests ---

  create(request: WatchCreateRequest): void {
    const { startRevision, watchId } = request;
    // The least key, as in etcd.
    const key = request.key.length === 0 ? ONE_ZERO : request.key;
    const range = keyRange(key, request.rangeEnd);
    const costBytes = costOf(request);
    const refusal = this.#refusal(request, range) ?? this.#tooMany(costBytes);
    const { revision } = this.#feed;
    if (refusal !== undefined) {
      const header = this.#owner.header(revision);
      this.#answer({
        header,
        watchId: NO_WATCH_ID,
        created: true,
        canceled: true,
        cancelReason: refusal,
      });
      return;
    }
    let id = watchId;
    if (id === 0) {
      while (this.#watchers.has(this.#nextId)) this.#nextId++;
      id = this.#nextId++;
    }
    this.#watchBytes += costBytes;
    const watcher: StreamWatcher = new Watcher(
      this,
      id,
      { ...request, range, costBytes },
      startRevision === 0 ? revision + 1 : startRevision,
    );
    watcher.permissions = this.#owner.permissions;
    this.#watchers.set(id, watcher);
    this.#answer({ header: this.#owner.header(revision), watchId: id, created: true });
    this.#feed.add(watcher, startRevision === 0 || startRevision > revision);
    if (watcher.progressDue !== undefined)
      this.#progressTimer ??= this.#owner.clock.every(this.#owner.progressPeriodMs(), () =>
        this.#tick(),
      );
  }

  /** Why a watch is not made, in etcd's words and order. */
  #refusal({ startRevision, watchId }: WatchCreateRequest, range: KeyRange): string | undefined {
    if (startRevision < 0) return errorOf("Compacted").message;
    const forbidden = this.#client.forbids(range);
    if (forbidden !== undefined) return forbidden;
    if (!range.single && range.to !== undefined && range.key >= range.to)
      return "mvcc: watcher range is empty";
    if (watchId !== 0 && this.#watchers.has(watchId))
      return "mvcc: duplicate watch ID provided on the WatchStream";
    return undefined;
  }

  /** Takes what a watch costs; why it is not made, if that goes beyond a bound. */
  #tooMany(costBytes: number): string | undefined {
    const { watchBudget } = this.#owner;
    if (this.#client.client === "" || watchBudget.take(this.#client.client, costBytes))
      return undefined;
    const { maxClientBytes, maxTotalBytes } = watchBudget.limits;
    return (
      `etcdserver: too many watches: those of this client hold ${watchBudget.usedBy(this.#client.client)} bytes of ${maxClientBytes}, ` +
      `those of all ${watchBudget.usedBytes} of ${maxTotalBytes}`
    );
  }

  #giveBack(costBytes: number): void {
    this.#watchBytes -= costBytes;
    if (this.#client.client !== "") this.#owner.watchBudget.give(this.#client.client, costBytes);
  }

  /** A watch that is not there is none of its concern, as in etcd. */
  cancel(id: StreamWatcher["id"]): void {
    const watcher = this.#watchers.get(id);
    if (watcher !== undefined) this.#end(watcher, undefined);
  }

  /** Sends the revision that all watches have reached, if none is behind (etcd: progressIfSync). */
  requestProgress(): void {
    this.#feed.settle();
    const { revision } = this.#feed;
    let any = false;
    for (const watcher of this.#watchers.values()) {
      if (watcher.place === undefined) continue;
      if (!watcher.isSynced || revision < watcher.startRevision) return;
      any = true;
    }
    if (any) this.#progress(NO_WATCH_ID);
  }

  #tick(): void {
    this.#feed.settle();
    for (const watcher of this.#watchers.values()) {
      if (watcher.progressDue === undefined || watcher.place === undefined) continue;
      const isDue =
        watcher.progressDue && watcher.isSynced && this.#feed.revision >= watcher.startRevision;
      // A client that does not read gets no notification that there is nothing to read.
      if (isDue && !this.#blocked) this.#progress(watcher.id);
      watcher.progressDue = true;
    }
  }

  #progress(id: StreamWatcher["id"]): void {
    this.flush();
    this.#answer({ header: this.#owner.header(this.#feed.revision), watchId: id });
  }

  /** The engine's send buffer has space again. */
  drained(): void {
    this.#blocked = false;
    this.#account();
    this.#call.resume();
    this.#unpark();
  }

  /** Resolves when a watch may be requested: the client's identity is known; undefined: now. */
  ready(): Promise<void> | undefined {
    return this.#client.ready();
  }

  /** Ends a watch that is not permitted any more. */
  recheck(watcher: StreamWatcher): void {
    if (this.#watchers.get(watcher.id) !== watcher) return;
    if (!checkPermission(watcher, this.#client, this.#owner.permissions))
      this.#end(watcher, watcher.forbidden);
  }

  #end(watcher: StreamWatcher, cancelReason: string | undefined): void {
    this.retractOpen(watcher);
    this.flush();
    if (watcher.place !== undefined) this.#feed.remove(watcher);
    this.#watchers.delete(watcher.id);
    this.#giveBack(watcher.costBytes);
    const header = this.#owner.header(this.#feed.revision);
    this.#answer({
      header,
      watchId: watcher.id,
      canceled: true,
      ...(cancelReason !== undefined && { cancelReason }),
    });
  }

  /** The call has ended: all watches end. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#progressTimer?.cancel();
    for (const { queue } of this.#ready) this.#owner.pendingEvents -= queue?.length ?? 0;
    this.#ready = [];
    this.#queuedBytes = 0;
    this.#blocked = false;
    this.#account();
    for (const watcher of this.#watchers.values()) {
      watcher.queue = undefined;
      if (watcher.place !== undefined) this.#feed.remove(watcher);
    }
    this.#watchers.clear();
    this.#giveBack(this.#watchBytes);
    this.#owner.closed(this);
  }

  /** Ends the call from this side. */
  end(status: Status): void {
    if (this.#closed) return;
    this.flush();
    this.close();
    this.#call.end(status);
  }

  // --- What the hub brings ---

  /**
   * Queues an event for a watcher that wants it and may have it; false if it is full: then nothing
   * of this revision is queued for the watcher.
   */
  offer(watcher: StreamWatcher, event: WatchEvent): boolean {
    if (!mayTake(watcher, this.#client, this.#owner.permissions)) return true;
    const { queue } = watcher;
    const sizeBytes =
      bytesOf(event, this.#prevKvFor(watcher)).length +
      REFERENCE_BYTES +
      (queue === undefined ? RESPONSE_BYTES : 0);
    if (!this.#fits(watcher, event.main, sizeBytes)) {
      this.#withdraw(watcher, event.main);
      return false;
    }
    this.#queue(watcher, queue?.and(event) ?? this.#feed.lists.of(event), 1, sizeBytes);
    return true;
  }

  /**
   * Queues events for a watcher that wants each of them, and may have them. Returns the revision
   * from which on it is full: of that one nothing is queued. Undefined: it has taken all.
   */
  offerAll(watcher: StreamWatcher, events: EventList): number | undefined {
    if (watcher.queue === undefined) {
      if (!mayTake(watcher, this.#client, this.#owner.permissions)) return undefined;
      const sizeBytes =
        events.sizeBytes(this.#prevKvFor(watcher)) +
        events.length * REFERENCE_BYTES +
        RESPONSE_BYTES;
      if (this.#isWithinStream(sizeBytes) && this.#isWithinTotal(sizeBytes)) {
        this.#queue(watcher, events, events.length, sizeBytes);
        return undefined;
      }
    }
    for (const event of events.events) if (!this.offer(watcher, event)) return event.main;
    return undefined;
  }

  #prevKvFor({ prevKv }: StreamWatcher): PrevKv | undefined {
    return prevKv ? this.#feed.prevKv : undefined;
  }

  /** @param added events of the queue that it did not have before, and their size */
  #queue(watcher: StreamWatcher, queue: EventList, added: number, addedBytes: number): void {
    watcher.queue = queue;
    if (!watcher.isReady) this.#ready.push(watcher);
    watcher.isReady = true;
    if (!this.#isTouched) {
      this.#isTouched = true;
      this.#feed.touched(this);
    }
    watcher.queuedBytes += addedBytes;
    this.#queuedBytes += addedBytes;
    this.#owner.pendingEvents += added;
    this.#account();
  }

  #isWithinStream(sizeBytes: number): boolean {
    return this.backlogBytes + sizeBytes <= this.#owner.limits.maxStreamBacklogBytes;
  }

  #isWithinTotal(sizeBytes: number): boolean {
    const { limits, backlogBytes } = this.#owner;
    return !this.#blocked || backlogBytes + sizeBytes <= limits.maxTotalBacklogBytes;
  }

  #fits(watcher: StreamWatcher, revision: number, sizeBytes: number): boolean {
    if (this.#isWithinStream(sizeBytes)) return this.#isWithinTotal(sizeBytes);
    // A revision is never cut. Of what is queued, the first revision of the first watcher goes
    // beyond the budget if it must, so that in each turn something is sent.
    if (this.#blocked) return false;
    const [first] = this.#ready;
    return first === undefined || (first === watcher && first.queue?.first.main === revision);
  }

  /** Takes back what is queued of a revision. A watcher that has nothing left stays in #ready. */
  #withdraw(watcher: StreamWatcher, revision: number): void {
    let { queue } = watcher;
    let sizeBytes = 0;
    while (queue !== undefined && queue.last.main === revision) {
      const event = queue.last;
      sizeBytes += bytesOf(event, this.#prevKvFor(watcher)).length + REFERENCE_BYTES;
      this.#owner.pendingEvents--;
      queue = queue.before;
    }
    watcher.queue = queue;
    watcher.queuedBytes -= sizeBytes;
    this.#queuedBytes -= sizeBytes;
  }

  /**
   * Takes back what is queued of a revision that was read in part: the watcher is about to leave
   * the pass that reads it.
   */
  retractOpen(watcher: StreamWatcher): void {
    const open = watcher.place?.openRevision;
    if (open !== undefined) this.#withdraw(watcher, open);
  }

  /** Keeps a watcher, which is in no other place, until there is space. */
  park(watcher: StreamWatcher): void {
    watcher.place = this.#parked;
    this.#parked.add(watcher);
  }

  #unpark(): void {
    // What is held back takes the space.
    if (this.#blocked || this.#ready.length > 0 || this.#parked.size === 0) return;
    const parked = [...this.#parked];
    this.#parked.clear();
    this.#feed.unpark(parked);
  }

  /**
   * A compaction has dropped what the watcher is still to get (etcd: the header has no revision
   * then).
   */
  compacted(watcher: StreamWatcher, compactRevision: number): void {
    this.retractOpen(watcher);
    this.flush();
    this.#answer({
      header: this.#owner.header(0),
      watchId: watcher.id,
      canceled: true,
      compactRevision,
    });
  }

  /**
   * Hands what is queued to the engine. Returns of how many watchers that was.
   * @param maxWatchers those beyond keep their queues, and `isTouched` stays true
   */
  flush(maxWatchers: number = Number.POSITIVE_INFINITY): number {
    this.#feed.settle();
    const held: StreamWatcher[] = [];
    const now: StreamWatcher[] = [];
    const later: StreamWatcher[] = [];
    for (const watcher of this.#ready)
      (isHeld(watcher) ? held : now.length < maxWatchers ? now : later).push(watcher);
    this.#isTouched = false;
    if (now.length > 0 || held.length > 0) {
      this.#ready = later;
      for (const watcher of now) {
        const { queue } = watcher;
        watcher.isReady = false;
        watcher.queue = undefined;
        this.#queuedBytes -= watcher.queuedBytes;
        watcher.queuedBytes = 0;
        if (queue !== undefined) this.#deliver(watcher, queue);
        watcher.caughtUpAt = 0;
      }
      this.#account();
      this.#isTouched = this.#ready.length > 0;
      for (const watcher of held) this.#ready.push(watcher);
      if (!this.#isTouched && held.length > 0) this.#feed.heldBack(this);
    }
    this.#unpark();
    return now.length;
  }

  /** Sends events of one watcher in as many responses as it takes. */
  #deliver(watcher: StreamWatcher, queue: EventList): void {
    if (!this.#deliverCommon(watcher, queue)) {
      const joined =
        watcher.prevKv || watcher.fragment ? undefined : queue.joined(this.#owner.limits);
      if (joined === undefined) this.#deliverEach(watcher, queue.events);
      else this.#respond(watcher, readThrough(watcher, queue.last.main), [joined]);
    }
    if (watcher.progressDue !== undefined) watcher.progressDue = false;
    this.#owner.pendingEvents -= queue.length;
    this.#owner.delivered(queue.length);
  }

  /** Sends what other watches get, too; false where that is not done. */
  #deliverCommon(watcher: StreamWatcher, queue: EventList): boolean {
    const call = this.#call;
    if (call.sendCommon === undefined || watcher.fragment) return false;
    const header = this.#owner.headerField(readThrough(watcher, queue.last.main));
    const common = queue.common(header, this.#prevKvFor(watcher), this.#owner.limits);
    if (common === undefined) return false;
    if (!this.#closed) this.#blocked = !call.sendCommon(common, idField(watcher.id));
    return true;
  }

  #deliverEach(watcher: StreamWatcher, queue: readonly WatchEvent[]): void {
    const { maxResponseRevisions, maxResponseBytes } = this.#owner.limits;
    let events: Uint8Array[] = [];
    let sizeBytes = 0;
    let revisions = 0;
    let last = 0;
    for (const event of queue) {
      const bytes = bytesOf(event, this.#prevKvFor(watcher));
      if (event.main !== last) {
        if (
          revisions === maxResponseRevisions ||
          (revisions > 0 && sizeBytes + bytes.length > maxResponseBytes)
        ) {
          this.#respond(watcher, last, events);
          events = [];
          sizeBytes = 0;
          revisions = 0;
        }
        revisions++;
        last = event.main;
      }
      events.push(bytes);
      sizeBytes += bytes.length;
    }
    this.#respond(watcher, readThrough(watcher, last), events);
  }

  #respond(watcher: StreamWatcher, revision: number, events: readonly Uint8Array[]): void {
    const header = this.#owner.headerField(revision);
    const id = idField(watcher.id);
    if (!watcher.fragment) this.#send(responsePieces(header, id, events));
    else {
      fragments(header.length + id.length, events, this.#owner.maxFragmentBytes, (part, more) =>
        this.#send(responsePieces(header, id, part, more)),
      );
    }
  }

  /**
   * Sends a response without events. From a client that does not read the responses, no more
   * requests are read.
   */
  #answer(response: Partial<WatchResponse>): void {
    this.#send(WatchResponse.encode(response));
    if (this.#blocked) this.#call.pause();
  }

  #send(message: Uint8Array | readonly Uint8Array[]): void {
    if (!this.#closed) this.#blocked = !this.#call.send(message);
  }

  /**
   * Updates the owner's count of queued bytes. What the engine holds in its budget is left out.
   */
  #account(): void {
    const bytes = this.#queuedBytes + (this.#blocked ? this.#call.bufferedBytes : 0);
    this.#owner.backlogBytes += bytes - this.#accountedBytes;
    this.#accountedBytes = bytes;
  }
}

function costOf({ key, rangeEnd }: WatchCreateRequest): number {
  return WATCH_BYTES + WATCH_KEY_FACTOR * (key.length + rangeEnd.length);
}

/**
 * The revision of a response's header whose last event is of revision `last`. For a watcher
 * that catches up it is the revision that it has reached. A client may resume behind the header's
 * revision: nothing up to it may be missing.
 */
function readThrough(watcher: StreamWatcher, last: number): number {
  return Math.max(last, watcher.caughtUpAt, watcher.place?.readThrough ?? 0);
}

/** A revision that is being read for the watcher is at the end of its queue: it is not cut. */
function isHeld({ queue, place }: StreamWatcher): boolean {
  return queue !== undefined && place?.openRevision === queue.last.main;
}
