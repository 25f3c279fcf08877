/**
 * The watchers of a member, and how changes reach them (etcd: mvcc/watchable_store.go).
 *
 *     change applied --> synced watchers of its key: queued on their streams, sent as a turn ends;
 *                        those of one range are a crowd, which is offered a turn's events at once
 *                    --> RecentEvents, from which a watcher a little behind catches up later
 *
 *     asks for the past  -+                          +-- near: from RecentEvents -----------+
 *     was parked         -+--> waiting --> a pass ---+                                      +-->
 *                        synced
 *     store exchanged    -+                          +-- deep: from the backend, beside it -+
 *
 * Both kinds of pass go on in bounded slices with turns of the event loop between them. A watcher
 * that is full on the way is parked; a pass does not wait. A watcher that is behind the compact
 * revision is cancelled when it is looked at.
 *
 * The store may be exchanged (a snapshot from the leader): detach, then attach; watchers go on
 * where they were.
 */

import type { Clock } from "@quorate/host";
import { defined } from "@quorate/proto";
import { type Change, Intervals, intervalOf, type KeyRange, type Mvcc } from "@quorate/store";
import type { Lifetime } from "../loop/lifetime.ts";
import { EventLists, WatchEvent } from "./event.ts";
import type { WatchLimits } from "./limits.ts";
import { Pass } from "./pass.ts";
import { RecentEvents } from "./recent-events.ts";
import type { StreamFeed, StreamWatcher, WatchStream } from "./watch-stream.ts";
import { type Crowd, WatcherGroup } from "./watcher-group.ts";

const EVENTS_BETWEEN_LOOKS = 8;
/** Watchers of all streams whose events are sent before a look at the time. */
const WATCHERS_BETWEEN_LOOKS = 64;

export interface ChangeFeedParts {
  readonly clock: Clock;
  readonly limits: WatchLimits;
  /** All open streams. */
  readonly streams: Iterable<WatchStream>;
  readonly lifetime: Pick<Lifetime, "end">;
}

export class ChangeFeed implements StreamFeed {
  readonly lists = new EventLists();
  readonly #parts: ChangeFeedParts;
  /** Synced watchers: those that want each event of their range, and those that look at each. */
  readonly #synced = new WatcherGroup<StreamWatcher>();
  readonly #choosy = new WatcherGroup<StreamWatcher>();
  /** Crowds of #synced that have a queue, in the order of its first event. */
  #unsettled: Crowd<StreamWatcher>[] = [];
  #unsettledBytes = 0;
  /** True while some watchers may have lost their permission: each is offered each event. */
  looksAtEach = false;
  /** Watchers that are in no pass yet. */
  readonly #waiting = new Set<StreamWatcher>();
  #near: Pass | undefined;
  #deep: Pass | undefined;
  #deepDone: Promise<void> = Promise.resolve();
  #touched: WatchStream[] = [];
  #watcherCount = 0;
  #mvcc: Mvcc | undefined;
  /** The store's revision when it was detached. */
  #lastRevision = 0;
  #recent: RecentEvents;
  #scheduled = false;

  constructor(parts: ChangeFeedParts) {
    this.#parts = parts;
    this.#recent = new RecentEvents(1, parts.limits);
  }

  // --- The store ---

  /** Follows a store, the first or one that took the place of another. */
  attach(mvcc: Mvcc): void {
    this.#mvcc = mvcc;
    this.#listen();
    if (this.#waiting.size > 0) this.#schedule();
  }

  /** Lets go of the store: when it resolves, nothing here reads it any more. Watches stay. */
  async detach(): Promise<void> {
    const mvcc = this.#mvcc;
    if (mvcc === undefined) return;
    this.settle();
    this.#lastRevision = mvcc.currentRevision;
    this.#mvcc = undefined;
    mvcc.onChange = undefined;
    for (const stream of this.#parts.streams) {
      for (const watcher of stream.watchers) {
        if (!watcher.isSynced) continue;
        watcher.isSynced = false;
        watcher.nextRevision = Math.max(watcher.nextRevision, this.#lastRevision + 1);
        watcher.place?.delete(watcher);
        this.#wait(watcher);
      }
    }
    if (this.#near !== undefined) this.#breakUp(this.#near);
    this.#near = undefined;
    if (this.#deep !== undefined) this.#deep.aborted = true;
    await this.#deepDone;
  }

  get revision(): number {
    return this.#mvcc?.currentRevision ?? this.#lastRevision;
  }

  get watcherCount(): number {
    return this.#watcherCount;
  }

  /** Watchers that are not synced. */
  get slowWatcherCount(): number {
    return this.#watcherCount - this.#synced.size - this.#choosy.size;
  }

  // --- Watchers ---

  readonly prevKv = (event: WatchEvent): Uint8Array | undefined => {
    const mvcc = defined(this.#mvcc, "the store that the event is of");
    return event.main - 1 < mvcc.compactRevision
      ? undefined
      : mvcc.recordAt(event.key, event.main - 1);
  };

  add(watcher: StreamWatcher, isSynced: boolean): void {
    this.#watcherCount++;
    this.#listen();
    if (isSynced && this.#mvcc !== undefined) this.#synchronize(watcher);
    else this.#enqueue(watcher);
  }

  remove(watcher: StreamWatcher): void {
    watcher.place?.delete(watcher);
    watcher.place = undefined;
    watcher.isSynced = false;
    if (--this.#watcherCount > 0) return;
    // No watcher is left: events need not be sent, or kept.
    if (this.#mvcc !== undefined) this.#mvcc.onChange = undefined;
    this.#recent = new RecentEvents(1, this.#parts.limits);
  }

  unpark(watchers: Iterable<StreamWatcher>): void {
    for (const watcher of watchers) this.#enqueue(watcher);
  }

  touched(stream: WatchStream): void {
    this.#touched.push(stream);
    this.#schedule();
  }

  heldBack(stream: WatchStream): void {
    this.#touched.push(stream);
  }

  // --- Changes as they are made ---

  #listen(): void {
    const mvcc = this.#mvcc;
    if (mvcc === undefined || mvcc.onChange !== undefined || this.#watcherCount === 0) return;
    this.#recent = new RecentEvents(mvcc.currentRevision + 1, this.#parts.limits);
    mvcc.onChange = (change) => this.#changed(change);
    mvcc.onLargeChange = (main, touched) => this.#changedMuch(main, touched);
  }

  #changed(change: Change): void {
    const event = new WatchEvent(change);
    this.#recent.push(event);
    let refused: StreamWatcher[] | undefined;
    const offer = (watcher: StreamWatcher): void => {
      if (!watcher.wants(event) || watcher.stream.offer(watcher, event)) return;
      if (refused === undefined) refused = [watcher];
      else refused.push(watcher);
    };
    this.#choosy.visit(event.key, offer);
    const queue = (crowd: Crowd<StreamWatcher>): void => this.#queue(crowd, event);
    this.#synced.visit(event.key, offer, this.looksAtEach ? undefined : queue);
    if (refused !== undefined) for (const watcher of refused) this.#park(watcher, event.main);
    if (this.#unsettledBytes > this.#parts.limits.maxResponseBytes) this.settle();
  }

  #queue(crowd: Crowd<StreamWatcher>, event: WatchEvent): void {
    // Later in this turn it may be compacted.
    if (crowd.wantsPrevKv) event.bytesWithPrev(this.prevKv);
    this.#unsettledBytes += event.heldBytes;
    if (crowd.queue !== undefined) crowd.queue = crowd.queue.and(event);
    else {
      crowd.queue = this.lists.of(event);
      this.#unsettled.push(crowd);
      this.#schedule();
    }
  }

  settle(): void {
    if (this.#unsettled.length === 0) return;
    const crowds = this.#unsettled;
    this.#unsettled = [];
    this.#unsettledBytes = 0;
    for (const crowd of crowds) {
      const events = crowd.queue;
      if (events === undefined) continue;
      crowd.queue = undefined;
      for (const watcher of crowd.watchers) {
        const revision = watcher.stream.offerAll(watcher, events);
        if (revision !== undefined) this.#park(watcher, revision);
      }
    }
  }

  /**
   * A revision with too many changes to offer them here: the watchers that it may concern read it
   * from the backend, in slices.
   */
  #changedMuch(main: number, touched: readonly KeyRange[]): void {
    this.settle();
    this.#recent = new RecentEvents(main + 1, this.#parts.limits);
    const keys = Intervals.of(touched.map(intervalOf));
    for (const stream of this.#parts.streams) {
      for (const watcher of stream.watchers) {
        if (!watcher.isSynced || !keys.overlaps(intervalOf(watcher.range))) continue;
        watcher.isSynced = false;
        watcher.nextRevision = Math.max(watcher.nextRevision, main);
        watcher.place?.delete(watcher);
        this.#enqueue(watcher);
      }
    }
  }

  readonly #park = (watcher: StreamWatcher, revision: number): void => {
    watcher.place?.delete(watcher);
    watcher.isSynced = false;
    watcher.nextRevision = revision;
    watcher.stream.park(watcher);
  };

  // --- Catching up ---

  #wait(watcher: StreamWatcher): void {
    watcher.place = this.#waiting;
    this.#waiting.add(watcher);
  }

  #enqueue(watcher: StreamWatcher): void {
    this.#wait(watcher);
    this.#schedule();
  }

  #synchronize(watcher: StreamWatcher): void {
    // What its crowd has not been offered is not for it.
    this.settle();
    const next = this.revision + 1;
    const group =
      watcher.takesBothKinds && watcher.nextRevision <= next ? this.#synced : this.#choosy;
    watcher.place = group;
    watcher.isSynced = true;
    watcher.nextRevision = Math.max(watcher.nextRevision, next);
    group.add(watcher);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#parts.clock.endOfTurn(this.#turn);
  }

  readonly #turn = (): void => {
    this.#scheduled = false;
    this.#flush();
    if (this.#mvcc === undefined) return;
    this.#startPasses(this.#mvcc);
    if (this.#near === undefined) return;
    this.#runNear(this.#near, this.#mvcc);
    this.#flush();
    if (this.#near !== undefined || this.#waiting.size > 0) this.#schedule();
  };

  #flush(): void {
    this.settle();
    const touched = this.#touched;
    this.#touched = [];
    const slice = this.#parts.clock.turns.begin();
    let watchers = 0;
    for (const [i, stream] of touched.entries()) {
      watchers += Math.max(1, stream.flush(this.#parts.limits.maxWatchersAtOnce));
      if (stream.isTouched) touched.push(stream);
      if (watchers < WATCHERS_BETWEEN_LOOKS) continue;
      watchers = 0;
      if (!slice.isOver) continue;
      // The others follow in the next turn.
      this.#touched = touched.slice(i + 1).concat(this.#touched);
      this.#schedule();
      break;
    }
    slice.end();
    this.lists.clear();
  }

  /** Sorts those that wait into passes. */
  #startPasses(mvcc: Mvcc): void {
    if (this.#waiting.size === 0) return;
    const near: StreamWatcher[] = [];
    const deep: StreamWatcher[] = [];
    for (const watcher of [...this.#waiting]) {
      const { nextRevision } = watcher;
      if (nextRevision < mvcc.compactRevision) this.#compacted(watcher, mvcc);
      else if (nextRevision > mvcc.currentRevision) {
        this.#waiting.delete(watcher);
        this.#synchronize(watcher);
      } else if (nextRevision >= this.#recent.firstRevision) near.push(watcher);
      else deep.push(watcher);
    }
    this.#near = this.#joinOrStart(this.#near, near);
    const reading = this.#deep;
    this.#deep = this.#joinOrStart(reading, deep);
    if (this.#deep !== undefined && this.#deep !== reading) this.#startDeep(this.#deep, mvcc);
  }

  /** Watchers that need what the pass has left behind go on waiting, for the next one. */
  #joinOrStart(pass: Pass | undefined, watchers: readonly StreamWatcher[]): Pass | undefined {
    const joining =
      pass === undefined
        ? watchers
        : watchers.filter(
            (watcher) => watcher.nextRevision > (pass.openRevision ?? pass.readThrough),
          );
    for (const watcher of joining) this.#waiting.delete(watcher);
    if (pass === undefined) return joining.length === 0 ? undefined : new Pass(joining);
    for (const watcher of joining) pass.add(watcher);
    return pass;
  }

  #compacted(watcher: StreamWatcher, mvcc: Mvcc): void {
    watcher.stream.compacted(watcher, mvcc.compactRevision);
    this.remove(watcher);
  }

  /** Cancels those of a pass that a compaction has overtaken. */
  #dropCompacted(pass: Pass, mvcc: Mvcc): void {
    if (pass.cursor >= mvcc.compactRevision) return;
    for (const watcher of [...pass.watchers]) {
      if (pass.nextOf(watcher) < mvcc.compactRevision) this.#compacted(watcher, mvcc);
    }
    // The watchers that are left want nothing before.
    pass.cursor = mvcc.compactRevision;
  }

  /** Lets the watchers of a pass wait again where it has got to. */
  #breakUp(pass: Pass): void {
    for (const watcher of [...pass.watchers]) {
      watcher.stream.retractOpen(watcher);
      watcher.nextRevision = pass.nextOf(watcher);
      pass.delete(watcher);
      this.#wait(watcher);
    }
  }

  /** One slice of the pass over recent events. */
  #runNear(pass: Pass, mvcc: Mvcc): void {
    this.#dropCompacted(pass, mvcc);
    if (pass.cursor < this.#recent.firstRevision) {
      this.#near = undefined;
      this.#breakUp(pass);
      return;
    }
    const slice = this.#parts.clock.turns.begin();
    let work = 0;
    let last = 0;
    let stopped = false;
    this.#recent.scan(pass.cursor, (event) => {
      if (event.main !== last) {
        pass.cursor = event.main;
        stopped = work > 0 && (work >= this.#parts.limits.maxSliceEvents || slice.isOver);
        if (stopped || pass.size === 0) return false;
        last = event.main;
      }
      work += 1 + pass.offer(event, this.#park);
      return true;
    });
    slice.end();
    if (stopped) return;
    this.#near = undefined;
    for (const watcher of [...pass.watchers]) {
      pass.delete(watcher);
      this.#synchronize(watcher);
      watcher.caughtUpAt = watcher.queue === undefined ? 0 : mvcc.currentRevision;
    }
  }

  #startDeep(pass: Pass, mvcc: Mvcc): void {
    const run = async () => {
      try {
        await this.#runDeep(pass, mvcc);
      } catch (error) {
        this.#parts.lifetime.end(error);
      }
      this.#deep = undefined;
      this.#breakUp(pass);
      if (this.#waiting.size > 0) this.#schedule();
    };
    this.#deepDone = run();
  }

  /** Reads history for a pass, up to the revision of now. */
  async #runDeep(pass: Pass, mvcc: Mvcc): Promise<void> {
    const last = mvcc.currentRevision;
    for await (const { changes, through } of mvcc.history(pass.cursor, last)) {
      for (let i = 0; i < changes.length; ) {
        if (pass.aborted) return;
        this.#dropCompacted(pass, mvcc);
        if (pass.size === 0) return;
        i = this.#offerSome(pass, changes, i);
        const next = changes[i]?.main;
        // What the slice ends with, or is cut within, may go on: it is not sent before it is
        // complete.
        const read = next === undefined ? through : next - 1;
        const latest = changes[i - 1]?.main ?? 0;
        pass.openRevision = latest > read ? latest : undefined;
        // Not back behind a compaction.
        pass.cursor = Math.max(pass.cursor, read + 1);
        this.#flush();
        await this.#parts.clock.turns.next();
      }
    }
    if (pass.aborted) return;
    // What a compaction dropped before it could be read was in no slice, and may have been all
    // there was.
    this.#dropCompacted(pass, mvcc);
    pass.openRevision = undefined;
    pass.cursor = Math.max(pass.cursor, last + 1);
    this.#flush();
  }

  /**
   * Offers changes to a pass, from place `start` on and as many as fit into a turn. Returns the
   * place of the next.
   */
  #offerSome(pass: Pass, changes: readonly Change[], start: number): number {
    const slice = this.#parts.clock.turns.begin();
    let work = 0;
    let i = start;
    while (work < this.#parts.limits.maxSliceEvents) {
      const change = changes[i];
      if (change === undefined) break;
      i++;
      work += 1 + pass.offer(new WatchEvent(change), this.#park);
      if (i % EVENTS_BETWEEN_LOOKS === 0 && slice.isOver) break;
    }
    slice.end();
    return i;
  }
}
