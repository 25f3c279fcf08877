/**
 * Spans that have ended wait here for the collector, in batches: one on its way at a time, the next
 * after BATCH_DELAY_MS or as soon as it is full. A collector that does not answer, or answers that
 * it cannot now, is tried again for RETRY_LIMIT_MS. What does not fit is dropped, and counted:
 * traces must never hold up the member.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import type { Counter } from "@quorate/metrics";
import type { Span } from "./span.ts";

/** Spans that wait; more are dropped (as in OpenTelemetry's own processors). */
export const MAX_QUEUED_SPANS = 2048;
export const MAX_BATCH_SPANS = 512;
export const BATCH_DELAY_MS = 5000;
export const RETRY_DELAY_MS = 5000;
export const RETRY_LIMIT_MS = 60_000;
/** A failing collector is logged at most this often. */
const LOG_INTERVAL_MS = 60_000;

/** How a batch fared. "again" is for what may go better later. */
export type Delivery =
  | { readonly kind: "done" }
  | { readonly kind: "again" | "refused"; readonly reason: string };

export interface BatchDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly exported: Counter;
  readonly dropped: Counter;
  /** Sends a batch; never rejects. */
  send(spans: readonly Span[]): Promise<Delivery>;
}

export class Batches {
  readonly #deps: BatchDeps;
  #queue: Span[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;
  #loggedMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(deps: BatchDeps) {
    this.#deps = deps;
  }

  get waitingCount(): number {
    return this.#queue.length;
  }

  /** Takes a span, or drops it where too many wait. */
  add(span: Span): void {
    if (this.#isClosed || this.#queue.length >= MAX_QUEUED_SPANS) {
      this.#deps.dropped.add();
      return;
    }
    this.#queue.push(span);
    if (this.#sending !== undefined) return;
    if (this.#queue.length >= MAX_BATCH_SPANS) this.#begin();
    else this.#timer ??= this.#deps.clock.after(BATCH_DELAY_MS, () => this.#begin());
  }

  /** Sends what waits, once, and takes nothing more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake?.();
    await this.#sending;
    while (this.#queue.length > 0) await this.#deliver(this.#queue.splice(0, MAX_BATCH_SPANS));
    this.#timer?.cancel();
  }

  #begin(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#sending = this.#run().finally(() => {
      this.#sending = undefined;
      if (this.#queue.length > 0 && !this.#isClosed)
        this.#timer ??= this.#deps.clock.after(BATCH_DELAY_MS, () => this.#begin());
    });
  }

  /** Sends full batches, and the first one whatever it holds. */
  async #run(): Promise<void> {
    do await this.#deliver(this.#queue.splice(0, MAX_BATCH_SPANS));
    while (this.#queue.length >= MAX_BATCH_SPANS && !this.#isClosed);
  }

  async #deliver(spans: readonly Span[]): Promise<void> {
    const { clock, exported, dropped, logger, send } = this.#deps;
    const giveUpMs = clock.monotonicMs() + RETRY_LIMIT_MS;
    for (;;) {
      const delivery = await send(spans);
      if (delivery.kind === "done") {
        exported.add(spans.length);
        return;
      }
      const nowMs = clock.monotonicMs();
      const isLast =
        delivery.kind === "refused" || this.#isClosed || nowMs + RETRY_DELAY_MS > giveUpMs;
      if (nowMs - this.#loggedMs >= LOG_INTERVAL_MS) {
        this.#loggedMs = nowMs;
        logger.warn("failed to export traces", {
          error: delivery.reason,
          spans: spans.length,
          "will-retry": !isLast,
        });
      }
      if (isLast) {
        dropped.add(spans.length);
        return;
      }
      await this.#pause();
    }
  }

  #wake: (() => void) | undefined;

  async #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#deps.clock.after(RETRY_DELAY_MS, resolve);
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
    timer.cancel();
  }
}
