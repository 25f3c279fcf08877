/**
 * The watches of one identity on the same range with the same options. Those that need the same
 * events from now on share one broadcast; one that starts earlier has its own until both have
 * reached the same revision (etcd: watch_broadcasts.go).
 */
import { toLatin1, type WatchCreateRequest } from "@quorate/proto";
import type { ProxyMetrics } from "../upstream/metrics.ts";
import { Broadcast, type BroadcastOwner } from "./broadcast.ts";
import type { PlainKeyValue } from "./event-batch.ts";
import type { Receiver } from "./receiver.ts";

/** The stream upstream, as its groups see it. */
export interface GroupOwner {
  readonly metrics: ProxyMetrics;
  readonly plain: PlainKeyValue | undefined;
  nextId(): number;
  /** Begins a watch upstream. */
  begin(broadcast: Broadcast): void;
  /** Ends it. @param isCanceled the cluster has ended it already */
  end(broadcast: Broadcast, isCanceled: boolean): void;
  /** The group has no watches any more. */
  emptied(group: WatchGroup): void;
}

export class WatchGroup implements BroadcastOwner {
  readonly key: string;
  readonly #owner: GroupOwner;
  readonly #broadcasts: Broadcast[] = [];

  constructor(key: string, owner: GroupOwner) {
    this.key = key;
    this.#owner = owner;
  }

  get metrics(): ProxyMetrics {
    return this.#owner.metrics;
  }

  get plain(): PlainKeyValue | undefined {
    return this.#owner.plain;
  }

  /**
   * Lets a receiver listen to a broadcast that has not passed its next revision: the one that is
   * nearest, or a new one.
   * @param start where a new broadcast begins: the next revision, or the one before for a watch
   * from now on (a member reports no progress to a watch that begins in the future)
   */
  add(receiver: Receiver, start: number): void {
    let best: Broadcast | undefined;
    for (const one of this.#broadcasts) {
      if (one.nextRevision > receiver.nextRevision) continue;
      // One that reads history would hold the receiver up.
      if (!one.isSynced && receiver.nextRevision - one.nextRevision > 1) continue;
      if (best === undefined || one.nextRevision > best.nextRevision) best = one;
    }
    if (best === undefined) {
      best = new Broadcast(this.#owner.nextId(), receiver.request, start, this);
      this.#broadcasts.push(best);
      best.add(receiver);
      this.#owner.begin(best);
    } else best.add(receiver);
  }

  /** Takes a receiver out of its broadcast. */
  delete(receiver: Receiver): void {
    const broadcast = this.#broadcasts.find((one) => one === receiver.broadcast);
    if (broadcast === undefined) return;
    broadcast.delete(receiver);
    this.#tidy(broadcast);
  }

  advanced(broadcast: Broadcast): void {
    if (broadcast.receivers.size > 0 && this.#broadcasts.length > 1) this.#coalesce(broadcast);
    this.#tidy(broadcast);
  }

  canceled(broadcast: Broadcast): void {
    this.#remove(broadcast, true);
  }

  /** Two broadcasts that stand at the same revision become one: the smaller joins the larger. */
  #coalesce(broadcast: Broadcast): void {
    for (const other of this.#broadcasts) {
      if (other === broadcast || !other.isLive || !broadcast.isLive) continue;
      if (other.nextRevision !== broadcast.nextRevision) continue;
      const isSmaller = broadcast.receivers.size <= other.receivers.size;
      const [from, to] = isSmaller ? [broadcast, other] : [other, broadcast];
      for (const receiver of [...from.receivers]) {
        from.delete(receiver);
        to.add(receiver);
      }
      this.#tidy(from);
      return;
    }
  }

  #tidy(broadcast: Broadcast): void {
    if (broadcast.receivers.size === 0) this.#remove(broadcast, false);
  }

  #remove(broadcast: Broadcast, isCanceled: boolean): void {
    const at = this.#broadcasts.indexOf(broadcast);
    if (at < 0) return;
    this.#broadcasts.splice(at, 1);
    this.#owner.end(broadcast, isCanceled);
    if (this.#broadcasts.length === 0) this.#owner.emptied(this);
  }
}

/**
 * The options by which watches may share a broadcast, as a text. Filters count as a set; the client
 * gets progress, fragments and its own id from the proxy.
 */
export function groupKey({ key, rangeEnd, prevKv, filters }: WatchCreateRequest): string {
  const shown = [...new Set(filters)].sort().join(",");
  const ends = `${key.length},${rangeEnd.length}`;
  return `${prevKv ? 1 : 0};${shown};${ends};${toLatin1(key)}${toLatin1(rangeEnd)}`;
}
