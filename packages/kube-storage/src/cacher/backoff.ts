/** Growing pauses between attempts, with chance in them so that servers do not act together. */
import type { Clock, Random } from "@quorate/host";

const FIRST_MS = 50;
const MAX_MS = 5000;
/** Without a call for so long, pauses begin small again. */
const RESET_MS = 120_000;

export class Backoff {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #random: Random;
  #delayMs = FIRST_MS;
  #lastMs = 0;

  constructor(clock: Pick<Clock, "monotonicMs">, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** The next pause: from half to the whole of a time that doubles up to 5 s. */
  nextMs(): number {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lastMs > RESET_MS) this.reset();
    this.#lastMs = nowMs;
    const delayMs = this.#delayMs;
    this.#delayMs = Math.min(delayMs * 2, MAX_MS);
    return delayMs * (0.5 + this.#random.unit() / 2);
  }

  reset(): void {
    this.#delayMs = FIRST_MS;
  }
}
