/**
 * Carries a compaction out beside other work: it removes superseded records in steps of a few
 * milliseconds and leaves the loop to others between them. Where the disk is behind it waits, and
 * leaves half of the backend's next batch to requests: a full one stops applying them.
 */
import type { Clock, Logger } from "@quorate/host";
import { errorOf } from "@quorate/proto";
import type { Mvcc } from "@quorate/store";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { StoreRef } from "../reads/store-ref.ts";

export interface CompactorParts {
  readonly store: StoreRef;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<
    MemberMetrics,
    "compactionPause" | "compactionDuration" | "compactionLastSeconds" | "compactionKeys"
  >;
  /** Records looked at in one batch. */
  readonly batchLimit: number;
  /** Rest between batches, in milliseconds. */
  readonly pauseMs: number;
  /** Asks for a batch of the backend to be written. */
  readonly flush: () => void;
  /** A compaction is done; the next may follow at once. */
  readonly finished: () => void;
  fatal(error: unknown): void;
}

export class Compactor {
  readonly #parts: CompactorParts;
  #running: Promise<void> | undefined;
  #stopping = false;
  #hasFailed = false;
  /** Ends the rest between two batches. */
  #wake: (() => void) | undefined;

  constructor(parts: CompactorParts) {
    this.#parts = parts;
  }

  /** A compaction was scheduled: carries on until there is nothing left to remove. */
  run(): void {
    if (this.#running !== undefined || this.#stopping) return;
    const { store, logger, metrics, clock } = this.#parts;
    const startMs = clock.monotonicMs();
    const { mvcc } = store.current;
    this.#running = this.#carryOut(mvcc).then(
      () => {
        this.#running = undefined;
        if (mvcc.isCompacting) return;
        const tookMs = clock.monotonicMs() - startMs;
        metrics.compactionDuration.observe(tookMs);
        metrics.compactionLastSeconds.value = clock.wallMs() / 1000;
        logger.info("finished scheduled compaction", {
          "compact-revision": mvcc.compactRevision,
          took: `${tookMs.toFixed(1)}ms`,
          "current-db-size-bytes": store.current.sizeOnDiskBytes,
          "current-db-size-in-use-bytes": store.current.liveBytes,
        });
        this.#parts.finished();
      },
      (error: unknown) => {
        this.#hasFailed = true;
        this.#parts.fatal(error);
      },
    );
  }

  async #carryOut(mvcc: Mvcc): Promise<void> {
    const { clock, metrics, batchLimit, pauseMs } = this.#parts;
    while (!this.#stopping) {
      const store = this.#parts.store.current;
      if (!store.isBusy) {
        const startMs = clock.monotonicMs();
        const droppedBefore = mvcc.droppedRecords;
        const slice = clock.turns.begin();
        const done = mvcc.compactStep(batchLimit, () => !slice.isOver);
        slice.end();
        metrics.compactionPause.observe(clock.monotonicMs() - startMs);
        metrics.compactionKeys.add(mvcc.droppedRecords - droppedBefore);
        if (done) return;
      }
      if (store.isFlushDue) this.#parts.flush();
      await this.#rest(pauseMs);
    }
  }

  /** Resolves after the pause, which may be an hour, or when it stops. */
  async #rest(pauseMs: number): Promise<void> {
    if (this.#stopping) return;
    await new Promise<void>((resolve) => {
      const timer = this.#parts.clock.after(pauseMs, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#wake = undefined;
  }

  /**
   * Resolves when no compaction is under way; rejects with Stopped where one has failed, which is
   * the end of the member.
   */
  async idle(): Promise<void> {
    while (this.#running !== undefined) {
      await this.#running;
      if (this.#hasFailed) throw errorOf("Stopped");
    }
  }

  /** Stops after the present batch; `run` goes on from there (the store remembers how far it came). */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wake?.();
    await this.#running;
    this.#stopping = false;
  }
}
