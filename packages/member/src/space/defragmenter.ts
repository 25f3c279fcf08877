/**
 * Defragmentation: the files of the store are rewritten beside other work, so that the space of
 * what compaction removed is freed. Calls that come while one runs wait for it and then share the
 * next: what was removed before a call is gone from the files when the call is answered.
 */
import type { Clock, Logger } from "@quorate/host";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { StoreRef } from "../reads/store-ref.ts";

export interface DefragmenterParts {
  readonly store: StoreRef;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<MemberMetrics, "defragInFlight" | "defragDuration">;
}

export class Defragmenter {
  readonly #parts: DefragmenterParts;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(parts: DefragmenterParts) {
    this.#parts = parts;
  }

  /** Resolves when the files have been rewritten. @throws DiskError */
  run(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#start();
      });
    return this.#next;
  }

  #start(): Promise<void> {
    const running = this.#rewrite().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #rewrite(): Promise<void> {
    const { clock, logger, metrics } = this.#parts;
    const store = this.#parts.store.current;
    const startMs = clock.monotonicMs();
    const beforeBytes = store.sizeOnDiskBytes;
    metrics.defragInFlight.value = 1;
    logger.info("starting defragment", { "current-db-size-bytes": beforeBytes });
    try {
      await store.reclaim();
    } catch (error) {
      logger.warn("failed to defragment", {
        error: error instanceof Error ? error.message : String(error),
      });
      throw error;
    } finally {
      metrics.defragInFlight.value = 0;
    }
    const tookMs = clock.monotonicMs() - startMs;
    metrics.defragDuration.observe(tookMs / 1000);
    logger.info("finished defragment", {
      "current-db-size-bytes-diff": store.sizeOnDiskBytes - beforeBytes,
      "current-db-size-bytes": store.sizeOnDiskBytes,
      "current-db-size-in-use-bytes": store.liveBytes,
      took: `${tookMs.toFixed(1)}ms`,
    });
  }
}
