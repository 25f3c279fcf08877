/**
 * How long the turns of the event loop take: while one runs, no request is served. Sampled once a
 * turn, so that an idle member is not woken for it (a sampling timer of 10 ms would be most of what
 * an idle member does).
 */
import { monitorEventLoopDelay, performance } from "node:perf_hooks";

/**
 * Samples are kept for this long at least, so that every scraper with this interval sees each peak.
 */
const WINDOW_MS = 30_000;
/** Only a Node that cannot sample turns uses it: there a timer this coarse samples instead. */
const TIMER_RESOLUTION_MS = 100;

/** Of the turns in the last window, in seconds. */
export interface LoopDelays {
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly stddev: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

const NONE: LoopDelays = { min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 };

/** Measures from when it is made until `stop`. */
export class LoopDelay {
  readonly #histogram = monitorEventLoopDelay({
    samplePerIteration: true,
    resolution: TIMER_RESOLUTION_MS,
  });
  #previous = NONE;
  #since = performance.now();

  constructor() {
    this.#histogram.enable();
  }

  /**
   * The present window's figures; peaks are those of the one before too. Begins a new window if
   * this one is over.
   */
  read(): LoopDelays {
    const present = this.#histogram.count === 0 ? NONE : this.#figures();
    const previous = this.#previous;
    if (performance.now() - this.#since >= WINDOW_MS) {
      this.#previous = present;
      this.#since = performance.now();
      this.#histogram.reset();
    }
    return {
      ...present,
      max: Math.max(present.max, previous.max),
      p90: Math.max(present.p90, previous.p90),
      p99: Math.max(present.p99, previous.p99),
    };
  }

  stop(): void {
    this.#histogram.disable();
  }

  #figures(): LoopDelays {
    const histogram = this.#histogram;
    const seconds = (nanoseconds: number) => nanoseconds / 1e9;
    return {
      min: seconds(histogram.min),
      max: seconds(histogram.max),
      mean: seconds(histogram.mean),
      stddev: seconds(histogram.stddev),
      p50: seconds(histogram.percentile(50)),
      p90: seconds(histogram.percentile(90)),
      p99: seconds(histogram.percentile(99)),
    };
  }
}
