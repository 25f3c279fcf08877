/**
 * One watch upstream, and the watches of clients that listen to it (etcd:
 * server/proxy/grpcproxy/watch_broadcast.go).
 *
 *   made with a start revision -> created by a member -> events ... -> created again elsewhere ->
 *   ... -> canceled by the cluster, or left by its last listener
 */
import type { WatchCreateRequest, WatchResponse } from "@quorate/proto";
import type { ProxyMetrics } from "../upstream/metrics.ts";
import { EventBatch, type PlainKeyValue } from "./event-batch.ts";
import type { Receiver } from "./receiver.ts";
import { canceledResponse, progressResponse } from "./watch-answers.ts";

/** The group of a broadcast. */
export interface BroadcastOwner {
  readonly metrics: ProxyMetrics;
  readonly plain: PlainKeyValue | undefined;
  /** The broadcast has read on: it may join another. */
  advanced(broadcast: Broadcast): void;
  /** The cluster has ended it; its receivers are notified. */
  canceled(broadcast: Broadcast): void;
}

export class Broadcast {
  /** Its watch_id upstream. */
  readonly id: number;
  /** Key and options; the start revision is `nextRevision`. */
  readonly request: WatchCreateRequest;
  readonly receivers = new Set<Receiver>();
  readonly #owner: BroadcastOwner;
  /** A member has confirmed it, on the stream that is open now. */
  isLive = false;
  /** It has received the history that there was when it was created. */
  isSynced = false;
  #historyRevision = Number.POSITIVE_INFINITY;
  /** The first revision that it has not received. */
  nextRevision: number;

  constructor(id: number, request: WatchCreateRequest, start: number, owner: BroadcastOwner) {
    this.id = id;
    this.request = request;
    this.nextRevision = start;
    this.#owner = owner;
  }

  add(receiver: Receiver): void {
    receiver.broadcast = this;
    this.receivers.add(receiver);
  }

  /** Takes a receiver out. It resumes where it stands. */
  delete(receiver: Receiver): void {
    this.receivers.delete(receiver);
    receiver.broadcast = undefined;
    receiver.nextRevision = Math.max(receiver.nextRevision, this.nextRevision);
  }

  /** A response for this watch has arrived. */
  take(response: WatchResponse): void {
    if (response.canceled) this.#cancel(response);
    else if (response.created) this.#created(response);
    else if (response.events.length > 0) this.#events(response);
    else this.#progress(response);
  }

  #created({ header }: WatchResponse): void {
    this.isLive = true;
    if (this.isSynced) return;
    this.#historyRevision = header?.revision ?? 0;
    this.isSynced = this.nextRevision >= this.#historyRevision;
  }

  #events({ header, events }: WatchResponse): void {
    const batch = new EventBatch(header, events, this.#owner.plain);
    // After a break a member may send again what this one has had.
    if (batch.lastRevision < this.nextRevision) return;
    let count = 0;
    for (const receiver of this.receivers) {
      if (batch.lastRevision < receiver.nextRevision) continue;
      if (batch.sendTo(receiver)) count++;
      else this.#leave(receiver, batch.firstRevision);
    }
    if (count > 1) this.#owner.metrics.eventsCoalescing.add(count - 1);
    this.nextRevision = batch.lastRevision + 1;
    this.isSynced ||= batch.lastRevision >= this.#historyRevision;
    this.#owner.advanced(this);
  }

  /** Without events a response states the revision up to which there are none. */
  #progress({ header }: WatchResponse): void {
    if (header === undefined) return;
    for (const receiver of this.receivers) {
      if (!receiver.wantsProgress || header.revision + 1 < receiver.nextRevision) continue;
      // A client that does not read needs none.
      receiver.stream.offer(progressResponse(header, receiver.id));
    }
    this.isSynced = true;
    if (header.revision < this.nextRevision) return;
    this.nextRevision = header.revision + 1;
    this.#owner.advanced(this);
  }

  #leave(receiver: Receiver, firstRevision: number): void {
    this.receivers.delete(receiver);
    receiver.broadcast = undefined;
    receiver.nextRevision = Math.max(receiver.nextRevision, firstRevision);
    this.#owner.metrics.slowWatches.add();
    receiver.stream.fellBehind(receiver);
  }

  #cancel(response: WatchResponse): void {
    const receivers = [...this.receivers];
    this.receivers.clear();
    this.#owner.canceled(this);
    for (const receiver of receivers) {
      receiver.broadcast = undefined;
      receiver.stream.ended(receiver, canceledResponse(response, receiver.id));
    }
  }
}
