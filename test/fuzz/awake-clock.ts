/**
 * A clock that stands still while the process does (SIGSTOP, a suspended machine). A fuzzer that
 * runs for hours beside other work is stopped at times; its limits must not count that.
 */

const TICK_MS = 200;
/** A gap between two ticks from which on the process was stopped, and not merely slow. */
const STOPPED_MS = 10_000;

export class AwakeClock {
  readonly #read: () => number;
  #readMs: number;
  #nowMs = 0;
  #stops = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param read a monotonic clock in milliseconds */
  constructor(read: () => number = () => performance.now()) {
    this.#read = read;
    this.#readMs = read();
  }

  /** Ticks until `stop`; without ticks every long wait looks like a stopped process. */
  start(): void {
    this.#timer = setInterval(() => this.tick(), TICK_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Milliseconds since the clock was made, without those in which the process stood still. */
  get nowMs(): number {
    this.tick();
    return this.#nowMs;
  }

  /** How often the process was stopped. */
  get stops(): number {
    this.tick();
    return this.#stops;
  }

  /** Runs a task, and again if it failed and the process stood still meanwhile. */
  async retried<T>(task: () => Promise<T>): Promise<T> {
    for (;;) {
      const { stops } = this;
      try {
        return await task();
      } catch (error) {
        if (this.stops === stops) throw error;
      }
    }
  }

  /** Notes the time that has passed. */
  tick(): void {
    const readMs = this.#read();
    const passedMs = readMs - this.#readMs;
    this.#readMs = readMs;
    if (passedMs < STOPPED_MS) this.#nowMs += passedMs;
    else this.#stops++;
  }
}
