/**
 * When tokens end that long-lived calls rest on. The roles of an identity provider's token are
 * valid for as long as the token: watches and other streams of its caller end with it.
 *
 *     note(end) ... -> one timer, at the earliest end -> every stream is looked at again,
 *                                                        and those that go on note their ends
 */
import type { Clock, Timer } from "@quorate/host";

/** Streams are looked at again so often at most. */
export const MIN_RECHECK_MS = 500;
/** The longest time that a timer is set for. */
const MAX_WAIT_MS = 3_600_000;

export class TokenEnds {
  readonly #clock: Clock;
  readonly #recheck: () => void;
  #earliestMs: number | undefined;
  #timer: Timer | undefined;

  /** @param recheck has every stream looked at again; those that go on note their ends */
  constructor(clock: Clock, recheck: () => void) {
    this.#clock = clock;
    this.#recheck = recheck;
  }

  /** A stream rests on a token. @param endsMs wall-clock time; undefined for no end */
  note(endsMs: number | undefined): void {
    if (endsMs === undefined || (this.#earliestMs !== undefined && endsMs >= this.#earliestMs))
      return;
    this.#earliestMs = endsMs;
    this.#timer?.cancel();
    this.#wait();
  }

  /** Whether a token has ended. */
  hasEnded(endsMs: number | undefined): boolean {
    return endsMs !== undefined && this.#clock.wallMs() >= endsMs;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#earliestMs = undefined;
  }

  #wait(): void {
    if (this.#earliestMs === undefined) return;
    const leftMs = this.#earliestMs - this.#clock.wallMs();
    const waitMs = Math.min(Math.max(leftMs, MIN_RECHECK_MS), MAX_WAIT_MS);
    this.#timer = this.#clock.after(waitMs, () => {
      if (!this.hasEnded(this.#earliestMs)) return this.#wait();
      this.#timer = undefined;
      this.#earliestMs = undefined;
      this.#recheck();
    });
  }
}
