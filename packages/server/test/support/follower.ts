/**
 * A client with watches as good libraries have them: when its stream is gone it goes on at another
 * member, from behind what it has seen. All that it receives is compared with the model as it
 * comes.
 */
import assert from "node:assert/strict";
import type { Member } from "@quorate/member";
import {
  fromLatin1,
  type WatchCreateRequest,
  type WatchResponse,
  WatchService,
} from "@quorate/proto";
import { serviceTable } from "@quorate/services";
import { concerns, type KeyModel, type ModelEvent, type Scope } from "./key-model.ts";
import { eventText, MemoryCall, revisionOf } from "./watching.ts";

export interface FollowerCounts {
  events: number;
  compacted: number;
  /** Streams that were lost or ended, and gone on with elsewhere. */
  moves: number;
  /** Streams that ended because their member had no leader. */
  leaderless: number;
}

interface Watch extends Scope {
  readonly prevKv: boolean;
  /** All up to here was received; undefined while it is to begin at "now". */
  through: number | undefined;
  /**
   * The first revision that it wants, and the place in the model's events of the first that was not
   * received.
   */
  start: number;
  next: number;
  created: boolean;
}

function wants(watch: Watch, event: ModelEvent): boolean {
  return event.revision >= watch.start && concerns(watch, event);
}

export class Follower {
  readonly name: string;
  readonly #model: KeyModel;
  readonly #counts: FollowerCounts;
  readonly #needsLeader: boolean;
  readonly #watches: Watch[] = [];
  #member: Member | undefined;
  #call: MemoryCall | undefined;

  constructor(name: string, model: KeyModel, counts: FollowerCounts, needsLeader: boolean) {
    this.name = name;
    this.#model = model;
    this.#counts = counts;
    this.#needsLeader = needsLeader;
  }

  get member(): Member | undefined {
    return this.#member;
  }

  get watchCount(): number {
    return this.#watches.length;
  }

  /** True if every watch received all that concerns it. */
  get isUpToDate(): boolean {
    return (
      this.#call !== undefined &&
      this.#watches.every(
        (watch) =>
          watch.created &&
          !this.#model.events.slice(watch.next).some((event) => wants(watch, event)),
      )
    );
  }

  /** What its watch that is furthest behind wants next, undefined if no watch has begun. */
  get wantedRevision(): number | undefined {
    const wanted = this.#watches.flatMap(({ through }) =>
      through === undefined ? [] : [through + 1],
    );
    return wanted.length === 0 ? undefined : Math.min(...wanted);
  }

  /** Adds a watch from revision `from`, or from now on. */
  add(scope: Scope, prevKv: boolean, from: number | undefined): void {
    const watch: Watch = {
      ...scope,
      prevKv,
      through: undefined,
      start: 0,
      next: 0,
      created: false,
    };
    if (from !== undefined) this.#begin(watch, from);
    this.#watches.push(watch);
    if (this.#call !== undefined) this.#create(this.#watches.length - 1);
  }

  /** Opens a stream to a member, with all watches. False if it refuses. */
  connect(member: Member, budgetBytes: number): boolean {
    this.drop();
    const call = new MemoryCall({
      budgetBytes,
      ...(this.#needsLeader && { metadata: { hasleader: "true" } }),
    });
    try {
      call.listener = serviceTable(member).stream.get(WatchService.methods.Watch.path)!(call);
    } catch {
      return false;
    }
    this.#counts.moves++;
    this.#member = member;
    this.#call = call;
    for (const [id, watch] of this.#watches.entries()) {
      watch.created = false;
      this.#create(id);
    }
    return true;
  }

  /** The connection breaks. */
  drop(): void {
    this.#call?.listener.cancelled?.();
    this.#call = undefined;
    this.#member = undefined;
  }

  progress(): void {
    this.#call?.progress();
  }

  /** Reads up to `count` responses. A stream that its member has ended is dropped then. */
  read(count: number): void {
    const call = this.#call;
    if (call === undefined) return;
    for (const response of call.read(count)) {
      this.#take(response);
      if (this.#call !== call) return;
    }
    if (call.status === undefined) return;
    if (/no leader/.test(call.status.message)) this.#counts.leaderless++;
    this.drop();
  }

  #create(id: number): void {
    const { from, to, noPut, noDelete, prevKv, through } = this.#watches[id];
    const filters = [...(noPut ? [0] : []), ...(noDelete ? [1] : [])];
    const value = {
      key: fromLatin1(from),
      rangeEnd: fromLatin1(to),
      filters,
      prevKv,
      watchId: id + 1,
    };
    const startRevision = through === undefined ? 0 : through + 1;
    this.#call!.request({
      case: "createRequest",
      value: { ...value, startRevision } as WatchCreateRequest,
    });
  }

  #begin(watch: Watch, revision: number): void {
    watch.through = revision - 1;
    watch.start = revision;
    watch.next = 0;
  }

  #take(response: WatchResponse): void {
    const { revision } = response.header!;
    if (response.watchId === -1) {
      for (const watch of this.#watches) if (watch.created) this.#completeThrough(watch, revision);
      return;
    }
    const watch = this.#watches[Number(response.watchId) - 1];
    if (response.created) {
      watch.created = true;
      if (watch.through === undefined) this.#begin(watch, revision + 1);
      return;
    }
    assert.ok(watch.created, this.#where("nothing before it is created"));
    if (response.canceled) {
      // Only a compaction ends one; what it has missed is gone, and it begins behind it.
      assert.ok(
        response.compactRevision > watch.through! + 1,
        this.#where(`cancelled: ${response.cancelReason}`),
      );
      this.#counts.compacted++;
      this.#begin(watch, response.compactRevision);
      this.drop();
      return;
    }
    for (const bytes of response.events) this.#received(watch, bytes);
    this.#completeThrough(watch, revision);
  }

  #received(watch: Watch, bytes: Uint8Array): void {
    const { events } = this.#model;
    while (watch.next < events.length && !wants(watch, events[watch.next])) watch.next++;
    const due = events[watch.next++];
    const text = eventText(bytes);
    const bare = text.split("<", 1)[0];
    assert.equal(
      bare,
      due?.text,
      this.#where(`a watch of ${watch.from} to ${watch.to} behind ${watch.through}`),
    );
    // What was before may be gone by a compaction at the event's own revision.
    if (!watch.prevKv || due.previous === undefined) assert.equal(text, bare);
    else if (revisionOf(bytes) > this.#member!.store.mvcc.compactRevision)
      assert.equal(text, `${bare}<${due.previous}`, this.#where("before"));
    this.#counts.events++;
  }

  /** The header says that nothing up to `revision` is missing. */
  #completeThrough(watch: Watch, revision: number): void {
    const { events } = this.#model;
    for (; watch.next < events.length && events[watch.next].revision <= revision; watch.next++) {
      assert.ok(
        !wants(watch, events[watch.next]),
        this.#where(`${events[watch.next].text} is missing below ${revision}`),
      );
    }
    watch.through = Math.max(watch.through!, revision);
  }

  #where(what: string): string {
    return `${this.name}: ${what}`;
  }
}
