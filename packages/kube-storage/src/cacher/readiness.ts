/**
 * Whether the cache is filled (apiserver: pkg/storage/cacher/ready.go):
 *
 *     pending <---> ready        each way to ready begins a generation
 *        \           /
 *          stopped               for good
 */
import type { Clock, Timer } from "@quorate/host";
import { type Cancellation, throwIfAborted } from "../meta/cancellation.ts";
import { ApiError } from "../meta/status.ts";

/** A request waits so long for the cache to be filled before it is refused. */
export const READY_WAIT_MS = 1000;
/** Requests that wait for that at a time; further ones are refused at once. */
export const MAX_READY_WAITERS = 1024;
/** Seconds after which a refused client should retry, at the most. */
const MAX_RETRY_AFTER_SECONDS = 30;

export class Readiness {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #waiters = new Set<() => void>();
  #state: "pending" | "ready" | "stopped" = "pending";
  #error = "";
  #isUnreadable = false;
  #generation = 0;
  #changedMs: number;

  constructor(clock: Pick<Clock, "monotonicMs" | "after">) {
    this.#clock = clock;
    this.#changedMs = clock.monotonicMs();
  }

  get isReady(): boolean {
    return this.#state === "ready";
  }

  /** Counts the times that the cache became ready. */
  get generation(): number {
    return this.#generation;
  }

  /** Undefined when ready, else why not. */
  get reason(): string | undefined {
    if (this.#state === "ready") return undefined;
    if (this.#state === "stopped") return "apiserver cacher is stopped";
    return `storage is (re)initializing${this.#error === "" ? "" : `: ${this.#error}`}`;
  }

  /** Whether the cache could not be filled because the store has something that is no object. */
  get isUnreadable(): boolean {
    return this.#isUnreadable;
  }

  ready(): void {
    this.#error = "";
    this.#isUnreadable = false;
    if (this.#state !== "pending") return;
    this.#generation++;
    this.#change("ready");
  }

  /**
   * @param error why the cache is to be filled again; "" for none
   * @param isUnreadable because something in the store is no object
   */
  pending(error: string, isUnreadable = false): void {
    this.#error = error;
    this.#isUnreadable = isUnreadable;
    if (this.#state === "ready") this.#change("pending");
  }

  stop(): void {
    if (this.#state !== "stopped") this.#change("stopped");
  }

  /**
   * Resolves when ready. Rejects with ApiError 429 when stopped, when that takes too long or too
   * many wait, and with the signal's reason.
   */
  async wait(signal: Cancellation | undefined): Promise<void> {
    throwIfAborted(signal);
    if (this.#state === "pending" && this.#waiters.size < MAX_READY_WAITERS)
      await this.#nextChange(signal);
    throwIfAborted(signal);
    const { reason } = this;
    if (reason === undefined) return;
    throw new ApiError(429, "TooManyRequests", reason, {
      retryAfterSeconds: this.#retryAfterSeconds(),
    });
  }

  /** Grows with the time since the cache was ready. */
  #retryAfterSeconds(): number {
    const downSeconds = (this.#clock.monotonicMs() - this.#changedMs) / 1000;
    return Math.floor(Math.min(MAX_RETRY_AFTER_SECONDS, Math.exp(0.06 * downSeconds)));
  }

  #nextChange(signal: Cancellation | undefined): Promise<void> {
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const done = () => {
        this.#waiters.delete(done);
        timer?.cancel();
        signal?.removeEventListener("abort", done);
        resolve();
      };
      timer = this.#clock.after(READY_WAIT_MS, done);
      signal?.addEventListener("abort", done);
      this.#waiters.add(done);
    });
  }

  #change(state: "pending" | "ready" | "stopped"): void {
    this.#state = state;
    this.#changedMs = this.#clock.monotonicMs();
    for (const done of this.#waiters) done();
  }
}
