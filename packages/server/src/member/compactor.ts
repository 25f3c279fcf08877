/**
 * Carries a compaction out beside other work: it removes superseded records in batches and leaves the loop to others between them.
 */
import type { Clock, Logger } from "@quorate/host";
import type { Mvcc } from "@quorate/store";

export interface CompactorParts {
  readonly mvcc: () => Mvcc;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Records looked at in one batch. */
  readonly batchLimit: number;
  /** Rest between batches, in milliseconds. */
  readonly pauseMs: number;
  fatal(error: unknown): void;
}

export class Compactor {
  readonly #parts: CompactorParts;
  #running: Promise<void> | undefined;
  #stopping = false;

  constructor(parts: CompactorParts) {
    this.#parts = parts;
  }

  /** A compaction was scheduled: carries on until there is nothing left to remove. */
  run(): void {
    if (this.#running !== undefined || this.#stopping) return;
    const startMs = this.#parts.clock.monotonicMs();
    this.#running = this.#carryOut().then(
      () => {
        this.#running = undefined;
        this.#parts.logger.info("finished scheduled compaction", {
          "compact-revision": this.#parts.mvcc().compactRevision,
          took: `${(this.#parts.clock.monotonicMs() - startMs).toFixed(1)}ms`,
        });
      },
      (error: unknown) => this.#parts.fatal(error),
    );
  }

  async #carryOut(): Promise<void> {
    const mvcc = this.#parts.mvcc();
    while (!this.#stopping && !(await mvcc.compactStep(this.#parts.batchLimit))) {
      await new Promise<void>((resolve) => this.#parts.clock.after(this.#parts.pauseMs, resolve));
    }
  }

  /** Resolves when no compaction is under way. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Stops at the next batch; `run` goes on from there (the store remembers how far it came). */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
    this.#stopping = false;
  }
}
