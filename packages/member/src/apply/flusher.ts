/** Writes the store's changes to the disk: at intervals, and when a batch has reached its bound. */
import type { Clock, Timer } from "@quorate/host";
import type { Histogram } from "@quorate/metrics";
import type { FaultHook } from "../loop/fault-points.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { LoopTurns } from "../loop/loop-turns.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { StoreExchange } from "./store-exchange.ts";

/** Batches on their way at a time. */
const MAX_FLUSHES = 2;

export interface FlusherDeps {
  readonly clock: Clock;
  readonly store: StoreRef;
  readonly exchange: Pick<StoreExchange, "isRunning">;
  readonly faults: FaultHook;
  readonly duration: Histogram;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
}

export class Flusher {
  readonly #everyMs: number;
  readonly #deps: FlusherDeps;
  #timer: Timer | undefined;
  #flushes = 0;

  /** @param everyMs --backend-batch-interval */
  constructor(everyMs: number, deps: FlusherDeps) {
    this.#everyMs = everyMs;
    this.#deps = deps;
  }

  start(): void {
    this.#timer = this.#deps.clock.every(this.#everyMs, () => this.flush());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Begins to write a batch, where there is something to write and not too much is on its way. */
  flush(): void {
    const { store, exchange, lifetime } = this.#deps;
    // While a received store takes its place, the old one is closed, and what it has not written
    // is not wanted any more.
    if (exchange.isRunning || !store.current.needsFlush || this.#flushes >= MAX_FLUSHES) return;
    this.#flushes++;
    this.#write().catch(lifetime.end);
  }

  async #write(): Promise<void> {
    const { clock, store, faults, duration, turns } = this.#deps;
    const startMs = clock.monotonicMs();
    faults("before-backend-flush");
    await store.current.flush();
    faults("after-backend-flush");
    this.#flushes--;
    duration.observe((clock.monotonicMs() - startMs) / 1000);
    // The loop may have waited for space.
    turns.wake();
  }
}
