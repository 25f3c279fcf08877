/**
 * Keys to be worked on, each once at a time (client-go: util/workqueue).
 *
 *     add(key) -> waiting -> process(key) -> done
 *                    ^          |  false or an error
 *                    '- pause --'  doubled with each attempt
 *
 * A key that is added while it is processed is processed again afterwards. A queue has a bound:
 * keys beyond it are dropped, and `rescan` is called when the queue has run empty.
 */

import type { Clock, Logger, Timer } from "@quorate/host";
import { textOf } from "@quorate/kube-storage";

export const MIN_RETRY_PAUSE_MS = 5;
export const MAX_RETRY_PAUSE_MS = 30_000;

export interface WorkQueueOptions<K> {
  /** For log lines. */
  readonly name: string;
  readonly concurrency: number;
  readonly maxKeys: number;
  /** Resolves with false to be called again after a pause. An error is logged, and is as false. */
  process(key: K): Promise<boolean>;
  /** Adds all keys again, some of which were dropped. */
  rescan?(): void;
}

export class WorkQueue<K> {
  readonly #options: WorkQueueOptions<K>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #waiting = new Set<K>();
  readonly #running = new Set<K>();
  /** Added while they were running. */
  readonly #again = new Set<K>();
  readonly #paused = new Map<K, Timer>();
  readonly #attempts = new Map<K, number>();
  #hasDropped = false;
  #stopped = false;

  constructor(options: WorkQueueOptions<K>, clock: Clock, logger: Logger) {
    this.#options = options;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Keys that wait, run or pause. */
  get size(): number {
    return this.#waiting.size + this.#running.size + this.#paused.size;
  }

  /** Whether there is work that no pause holds up. */
  get isBusy(): boolean {
    return this.#waiting.size + this.#running.size > 0;
  }

  add(key: K): void {
    if (this.#stopped || this.#waiting.has(key)) return;
    if (this.#running.has(key)) {
      this.#again.add(key);
      return;
    }
    this.#unpause(key);
    if (this.size >= this.#options.maxKeys) {
      this.#hasDropped = true;
      return;
    }
    this.#waiting.add(key);
    this.#next();
  }

  /** Adds the key later, unless it is there before. */
  addAfter(key: K, pauseMs: number): void {
    if (this.#stopped || this.#waiting.has(key) || this.#paused.has(key)) return;
    if (this.size >= this.#options.maxKeys) {
      this.#hasDropped = true;
      return;
    }
    const timer = this.#clock.after(pauseMs, () => {
      this.#paused.delete(key);
      this.add(key);
    });
    this.#paused.set(key, timer);
  }

  /** Forgets everything. What runs is not interrupted. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#paused.values()) timer.cancel();
    this.#paused.clear();
    this.#waiting.clear();
    this.#again.clear();
    this.#attempts.clear();
  }

  #unpause(key: K): void {
    this.#paused.get(key)?.cancel();
    this.#paused.delete(key);
  }

  #next(): void {
    while (this.#running.size < this.#options.concurrency) {
      const { value: key, done } = this.#waiting.values().next();
      if (done) break;
      this.#waiting.delete(key);
      this.#running.add(key);
      void this.#run(key);
    }
  }

  async #run(key: K): Promise<void> {
    let isDone = false;
    try {
      isDone = await this.#options.process(key);
    } catch (error) {
      if (!this.#stopped) this.#warn(error);
    }
    this.#running.delete(key);
    if (this.#stopped) return;
    const again = this.#again.delete(key);
    if (isDone) this.#attempts.delete(key);
    if (again) this.add(key);
    else if (!isDone) this.addAfter(key, this.#nextPauseMs(key));
    this.#next();
    this.#rescan();
  }

  #nextPauseMs(key: K): number {
    const attempts = this.#attempts.get(key) ?? 0;
    this.#attempts.set(key, attempts + 1);
    return Math.min(MIN_RETRY_PAUSE_MS * 2 ** Math.min(attempts, 30), MAX_RETRY_PAUSE_MS);
  }

  #rescan(): void {
    if (!this.#hasDropped || this.size > 0) return;
    this.#hasDropped = false;
    this.#options.rescan?.();
  }

  #warn(error: unknown): void {
    const text = textOf(error);
    this.#logger.warn("work failed and is tried again", { queue: this.#options.name, error: text });
  }
}
