/** Calls with one answer that take long are logged, as etcd logs them: "request stats". */
import { type Clock, formatDurationMs, type Logger } from "@quorate/host";

/**
 * Lines in one second; an overloaded member must not be slowed down further by a line for each
 * call. What is left out is counted.
 */
const MAX_LINES_A_SECOND = 10;

export class SlowCalls {
  readonly #limitMs: number;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #leftOut = 0;

  /** @param limitMs calls that take longer are logged. */
  constructor(limitMs: number, clock: Clock, logger: Logger) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** A call has ended now. `startedMs` is of the clock's monotonic time. */
  ended(path: string, code: string, startedMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const tookMs = nowMs - startedMs;
    if (tookMs <= this.#limitMs) return;
    if (nowMs - this.#windowStartMs >= 1000) {
      this.#windowStartMs = nowMs;
      this.#lines = 0;
    }
    if (this.#lines === MAX_LINES_A_SECOND) {
      this.#leftOut++;
      return;
    }
    this.#lines++;
    this.#logger.warn("request stats", {
      "start time": new Date(this.#clock.wallMs() - tookMs).toISOString(),
      "time spent": formatDurationMs(tookMs),
      "expected-duration": formatDurationMs(this.#limitMs),
      "response type": path,
      code,
      ...(this.#leftOut === 0 ? {} : { "left-out": this.#leftOut }),
    });
    this.#leftOut = 0;
  }
}
