/**
 * A connection to a cluster in memory, with the delays and failures of a network; and such a
 * cluster, which writes down its history.
 */
import type { Clock, Random } from "@quorate/host";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import type { KubeObject } from "../../../src/meta/object.ts";
import type { ApiError } from "../../../src/meta/status.ts";
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
import { MemoryCluster, partsOf } from "../../../testing/memory-cluster.ts";
import type { Delays, Faults } from "./faults.ts";
import type { History } from "./history.ts";
import { RESOURCE_PREFIX } from "./object.ts";

export const ROOT = "/registry";

/** A cluster whose changes of the resource are in the history as soon as they happen. */
export class RecordedCluster extends MemoryCluster {
  readonly #history: History;

  constructor(history: History) {
    super();
    this.#history = history;
  }

  override write(key: Uint8Array, value: Uint8Array, lease?: bigint): void {
    super.write(key, value, lease);
    this.#record(key, JSON.parse(toUtf8(value)) as KubeObject);
  }

  override remove(key: Uint8Array): void {
    super.remove(key);
    this.#record(key, undefined);
  }

  writeElsewhere(): void {
    this.write(fromUtf8("/elsewhere"), fromUtf8("{}"));
  }

  #record(key: Uint8Array, object: KubeObject | undefined): void {
    const text = toUtf8(key);
    if (text.startsWith(`${ROOT}${RESOURCE_PREFIX}/`))
      this.#history.write(text.slice(ROOT.length), object);
    else this.#history.writeElsewhere();
  }
}

export class ClusterConnection implements ClusterClient, Faults {
  readonly #cluster: MemoryCluster;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #watches = new Set<ConnectedWatch>();
  delays: Delays;
  isDown = false;

  constructor(cluster: MemoryCluster, clock: Clock, random: Random, delays: Delays) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#random = random;
    this.delays = delays;
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  range(key: Uint8Array, options: ClusterRangeOptions): Promise<ClusterRange> {
    return this.#call(() => this.#cluster.range(key, options));
  }

  rangeParts(
    key: Uint8Array,
    options: ClusterRangeOptions,
  ): AsyncGenerator<ClusterPart, undefined> {
    return partsOf(this, key, options);
  }

  modRevisions(keys: readonly Uint8Array[]): Promise<readonly number[]> {
    return this.#call(() => this.#cluster.modRevisions(keys));
  }

  put(
    key: Uint8Array,
    value: Uint8Array,
    lease: bigint | "keep",
    options: ClusterWriteOptions,
  ): Promise<ClusterWrite> {
    return this.#call(() => this.#cluster.put(key, value, lease, options));
  }

  delete(key: Uint8Array, options: ClusterWriteOptions): Promise<ClusterWrite> {
    return this.#call(() => this.#cluster.delete(key, options));
  }

  grantLease(ttlSeconds: number): Promise<bigint> {
    return this.#call(() => this.#cluster.grantLease(ttlSeconds));
  }

  compact(revision: number): Promise<void> {
    return this.#cluster.compact(revision);
  }

  watch(key: Uint8Array, options: ClusterWatchOptions): ClusterWatch {
    const closed = () => this.#watches.delete(watch);
    const pause = () => this.pause(this.delays.eventMs);
    const watch = new ConnectedWatch(this.#cluster.watch(key, options), pause, closed);
    this.#watches.add(watch);
    if (this.isDown) watch.lose(new ClusterError("Unavailable", "down"));
    return watch;
  }

  loseConnections(error: ApiError | undefined): void {
    for (const watch of this.#watches) watch.lose(error);
  }

  compacted(): void {}

  pause(maxMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(this.#random.below(maxMs + 1), resolve);
    });
  }

  async #call<T>(run: () => Promise<T>): Promise<T> {
    await this.pause(this.delays.callMs);
    if (this.isDown) throw new ClusterError("Unavailable", "down");
    const result = await run();
    await this.pause(this.delays.callMs);
    return result;
  }
}

class ConnectedWatch implements ClusterWatch {
  readonly #inner: ClusterWatch;
  readonly #pause: () => Promise<void>;
  readonly #closed: () => void;
  #lost: { readonly error: Error | undefined } | undefined;

  constructor(inner: ClusterWatch, pause: () => Promise<void>, closed: () => void) {
    this.#inner = inner;
    this.#pause = pause;
    this.#closed = closed;
  }

  requestProgress(): void {
    this.#inner.requestProgress();
  }

  cancel(): void {
    this.#closed();
    this.#inner.cancel();
  }

  /** @param error undefined: it just ends */
  lose(error: Error | undefined): void {
    this.#lost = { error };
    this.cancel();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ClusterWatchResponse, undefined> {
    try {
      for await (const { events, revision } of this.#inner) {
        await this.#pause();
        if (this.#lost !== undefined) break;
        if (events.length === 0) yield { events, revision };
        // One by one, so that each has a delay of its own.
        for (const event of events) {
          yield { events: [event], revision: event.record.modRevision };
          await this.#pause();
          if (this.#lost !== undefined) break;
        }
      }
      if (this.#lost?.error !== undefined) throw this.#lost.error;
    } finally {
      this.#closed();
    }
  }
}
