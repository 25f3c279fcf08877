/** The state of one member in top. */
import type { StatusResponse } from "@quorate/proto";
import type { MetricsText } from "../observe/metrics-text.ts";

/** A member's metrics at one time, in monotonic milliseconds. */
export interface Scrape {
  readonly atMs: number;
  readonly metrics: MetricsText;
}

/** The state of one member, or of an endpoint that has not led to a member yet. */
export interface Row {
  readonly label: string;
  /** The member from the list or from its own status; undefined before either is known. */
  readonly memberId: bigint | undefined;
  readonly isNeverStarted: boolean;
  readonly status: StatusResponse | undefined;
  /** Arrival of the status, in monotonic milliseconds. */
  readonly statusAtMs: number | undefined;
  /** The polling round of the status. */
  readonly round: number;
  /** The Raft index of the previous status. */
  readonly indexBefore: number | undefined;
  /** The two newest scrapes. */
  readonly now: Scrape | undefined;
  readonly before: Scrape | undefined;
  /** Why the last poll failed; undefined if it succeeded. */
  readonly failure: string | undefined;
  readonly calls: History;
  readonly fsync: History;
}

/** Values kept per figure: five minutes at one per second. */
export const HISTORY_SAMPLES = 300;

/** A ring buffer of numbers; NaN is an unknown value. */
export class History {
  readonly #values = new Float64Array(HISTORY_SAMPLES);
  #count = 0;

  push(value: number | undefined): void {
    this.#values[this.#count % HISTORY_SAMPLES] = value ?? Number.NaN;
    this.#count++;
  }

  /** The number of values, at most HISTORY_SAMPLES. */
  get length(): number {
    return Math.min(this.#count, HISTORY_SAMPLES);
  }

  /** The newest `count` values, or all if there are fewer, oldest first. */
  last(count: number): number[] {
    const size = Math.min(Math.max(count, 0), this.length);
    const next = this.#count % HISTORY_SAMPLES;
    const all = [...this.#values.subarray(next), ...this.#values.subarray(0, next)];
    return all.slice(HISTORY_SAMPLES - size);
  }
}
