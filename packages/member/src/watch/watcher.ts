/**
 * One watch, and where it stands. At any time it is in exactly one place (etcd: synced, unsynced,
 * victims):
 *
 *     synced       it has everything up to now, and gets each event as it is made
 *     catching up  it reads history, from nextRevision on
 *     parked       its stream is full; nextRevision is the first revision that it has not got.
 *                  It catches up when there is space.
 *     ended        cancelled, or its revision was compacted
 */
import { WatchCreateRequest_FilterType, type WatchId } from "@quorate/proto";
import type { KeyRange } from "@quorate/store";
import type { EventList, WatchEvent } from "./event.ts";

/** Where a watcher is kept while it is not ended. */
export interface Place<W> {
  /** Where history is read: up to where that is done. */
  readonly readThrough?: number;
  /** The revision of which a part was read. */
  readonly openRevision?: number | undefined;
  delete(watcher: W): void;
}

/** A client's settings of a watch. */
export interface WatchRequest {
  readonly range: KeyRange;
  /** First revision wanted; 0: from now on. */
  readonly startRevision: number;
  readonly filters: readonly number[];
  readonly prevKv: boolean;
  readonly fragment: boolean;
  readonly progressNotify: boolean;
  /** What it takes in memory, about. */
  readonly costBytes: number;
}

export class Watcher<S> {
  readonly stream: S;
  readonly id: WatchId;
  readonly range: KeyRange;
  readonly startRevision: number;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  readonly costBytes: number;
  readonly #noPut: boolean;
  readonly #noDelete: boolean;
  /** Events before this revision are not for it. */
  nextRevision: number;
  /** Undefined: ended. */
  place: Place<Watcher<S>> | undefined = undefined;
  isSynced = false;
  /** Events that wait for the end of the turn; undefined: none. Kept by the stream. */
  queue: EventList | undefined = undefined;
  /** Whether the stream has it in its list of those with a queue. Kept by the stream. */
  isReady = false;
  /** What the queue counts for. Kept by the stream. */
  queuedBytes = 0;
  /**
   * The store's revision when it had caught up, for the header of the response that says so; 0:
   * nothing to say.
   */
  caughtUpAt = 0;
  /** The changes of permissions by which it is known to be permitted. Kept by the stream. */
  permissions = 0;
  /**
   * Why it is not permitted any more: it takes no event until it is ended. Kept by the stream.
   */
  forbidden: string | undefined = undefined;
  /** True: send a progress notification at the next tick; undefined: none are wanted. */
  progressDue: boolean | undefined;

  constructor(stream: S, id: WatchId, request: WatchRequest, nextRevision: number) {
    this.stream = stream;
    this.id = id;
    this.range = request.range;
    this.startRevision = request.startRevision;
    this.prevKv = request.prevKv;
    this.fragment = request.fragment;
    this.costBytes = request.costBytes;
    this.#noPut = request.filters.includes(WatchCreateRequest_FilterType.NOPUT);
    this.#noDelete = request.filters.includes(WatchCreateRequest_FilterType.NODELETE);
    this.nextRevision = nextRevision;
    // The first tick is silent only after an event (etcd: serverWatchStream.progress).
    this.progressDue = request.progressNotify ? true : undefined;
  }

  /** True if it has no filter. */
  get takesBothKinds(): boolean {
    return !this.#noPut && !this.#noDelete;
  }

  /** True if an event of its range is to be sent. */
  wants(event: WatchEvent): boolean {
    return event.main >= this.nextRevision && !(event.deleted ? this.#noDelete : this.#noPut);
  }
}

/** The client that a stream's watches belong to. */
export interface StreamClient {
  /** Key of fairness; "" for this member, whose own watches are bounded where they are made. */
  readonly client: string;
  /** Resolves when the client's identity is known; undefined: now. */
  ready(): Promise<void> | undefined;
  /** Why it may not watch a range, in the words of cancel_reason; undefined: it may. */
  forbids(range: KeyRange): string | undefined;
  /** The same for a watch that was made before. */
  revoked(range: KeyRange): string | undefined;
}

/**
 * Looks up whether the watch is permitted after `changes` changes of permissions, which are counted
 * while watches run. A watch that was once forbidden
 * stays so: it has missed events.
 */
export function checkPermission(
  watcher: Watcher<unknown>,
  client: StreamClient,
  changes: number,
): boolean {
  watcher.forbidden ??= client.revoked(watcher.range);
  watcher.permissions = changes;
  return watcher.forbidden === undefined;
}

/**
 * Whether a watch may take an event. What was written after a permission ended is not for it, even
 * if the same turn of the event loop brought both and the watch is not ended yet.
 */
export function mayTake(watcher: Watcher<unknown>, client: StreamClient, changes: number): boolean {
  if (watcher.permissions === changes && watcher.forbidden === undefined) return true;
  return checkPermission(watcher, client, changes);
}
