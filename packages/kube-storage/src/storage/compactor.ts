/**
 * Compaction of the cluster's history (apiserver: pkg/storage/etcd3/compact.go). Every interval one
 * of all API servers of a cluster compacts to the revision of an interval ago, so that watchers may
 * fall behind by that time. They agree by the key "compact_rev_key", kube-apiservers included: who
 * changes it first in an interval compacts; its value is the revision of the compaction before.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import type { ClusterClient, ClusterRecord, ClusterWatch } from "./cluster-client.ts";
import { textOf } from "./errors.ts";
import { endOfKey } from "./etcd-values.ts";

const KEY: Uint8Array = fromUtf8("compact_rev_key");

/** A lost watch of the key is opened again after this time. */
const WATCH_RETRY_MS = 1000;

export interface CompactorDeps {
  readonly client: ClusterClient;
  readonly clock: Pick<Clock, "after" | "every">;
  readonly logger: Logger;
}

export class Compactor {
  readonly #deps: CompactorDeps;
  readonly #timer: Timer | undefined;
  /** Of the key, as it was left or seen last: 0 where there is none. */
  #keyRevision = 0;
  /** The store's, at the last look: what the next compaction keeps from. */
  #storeRevision = 0;
  #compacted = 0;
  #isBusy = false;
  #isStopped = false;
  #watch: ClusterWatch | undefined;
  #retry: Timer | undefined;

  /** @param intervalMs 0: this server only observes the others (--etcd-compaction-interval) */
  constructor(intervalMs: number, deps: CompactorDeps) {
    this.#deps = deps;
    this.#timer =
      intervalMs === 0 ? undefined : deps.clock.every(intervalMs, () => void this.run());
    void this.#observe();
  }

  /** The latest compaction of any API server that is known; 0 for none. */
  get compactRevision(): number {
    return this.#compacted;
  }

  /** One round; called by the timer. Never rejects. */
  async run(): Promise<void> {
    if (this.#isBusy || this.#isStopped) return;
    this.#isBusy = true;
    try {
      await this.#compact();
    } catch (error) {
      this.#deps.logger.warn("cannot compact the store's history", { error: textOf(error) });
    } finally {
      this.#isBusy = false;
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#retry?.cancel();
    this.#watch?.cancel();
  }

  async #compact(): Promise<void> {
    const { client } = this.#deps;
    const target = this.#storeRevision;
    const { succeeded, revision, present } = await client.put(KEY, fromUtf8(String(target)), 0n, {
      expectedRevision: this.#keyRevision,
      readOnFailure: true,
    });
    this.#storeRevision = revision;
    if (!succeeded) {
      // Another server compacted in this interval; the next turn may be ours.
      this.#keyRevision = present?.modRevision ?? 0;
      this.#learn(present);
      return;
    }
    this.#keyRevision = revision;
    if (target === 0) return;
    await client.compact(target);
    this.#compacted = Math.max(this.#compacted, target);
  }

  #learn(record: ClusterRecord | undefined): void {
    const revision = record === undefined ? 0 : Number(toUtf8(record.value));
    if (Number.isSafeInteger(revision)) this.#compacted = Math.max(this.#compacted, revision);
  }

  /** Follows the key, which other servers write too. */
  async #observe(): Promise<void> {
    const { client, clock, logger } = this.#deps;
    try {
      const range = { end: endOfKey(KEY), revision: 0, limit: 1 };
      const { records, revision } = await client.range(KEY, range);
      if (this.#isStopped) return;
      this.#learn(records[0]);
      const options = { end: undefined, revision: revision + 1, progressNotify: false };
      this.#watch = client.watch(KEY, options);
      for await (const { events } of this.#watch)
        for (const { record } of events) this.#learn(record);
    } catch (error) {
      logger.warn("cannot follow the compactions of the store", { error: textOf(error) });
    }
    if (!this.#isStopped) this.#retry = clock.after(WATCH_RETRY_MS, () => void this.#observe());
  }
}
