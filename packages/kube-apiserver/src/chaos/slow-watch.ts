/**
 * A watch whose events come late, in their order, and which may be cut off on its way. It holds one
 * event at a time: meanwhile the watch below is paused, and sends all that has happened at once.
 */
import type { Clock, Timer } from "@quorate/host";
import type { ApiError, Watch, WatchEvent, WatchListener } from "@quorate/kube-storage";

/** What becomes of the n-th change of a watch, from 1. Bookmarks follow what is before them. */
export type FateOf = (n: number, event: WatchEvent) => { readonly delayMs: number } | "cut";

export class SlowWatch implements Watch {
  readonly #below: Watch;
  readonly #fateOf: FateOf;
  readonly #clock: Pick<Clock, "after">;
  /** Cuts the response off. */
  readonly #cut: () => void;
  #listener: WatchListener | undefined;
  #changes = 0;
  #held: WatchEvent | undefined;
  #timer: Timer | undefined;
  /** It ended while an event was held. */
  #end: { readonly error: ApiError | undefined } | undefined;

  constructor(below: Watch, fateOf: FateOf, clock: Pick<Clock, "after">, cut: () => void) {
    this.#below = below;
    this.#fateOf = fateOf;
    this.#clock = clock;
    this.#cut = cut;
  }

  start(listener: WatchListener): void {
    this.#listener = listener;
    this.#below.start({
      event: (event) => this.#event(event, listener),
      ended: (error) => {
        if (this.#held === undefined) listener.ended(error);
        else this.#end = { error };
      },
    });
  }

  resume(): void {
    if (this.#held === undefined) this.#below.resume();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#held = undefined;
    this.#below.stop();
  }

  #event(event: WatchEvent, listener: WatchListener): boolean {
    if (event.type === "BOOKMARK") return listener.event(event);
    const fate = this.#fateOf(++this.#changes, event);
    if (fate === "cut") {
      this.#cut();
      return false;
    }
    if (fate.delayMs <= 0) return listener.event(event);
    this.#held = event;
    this.#timer = this.#clock.after(fate.delayMs, () => this.#release(event));
    return false;
  }

  #release(event: WatchEvent): void {
    const listener = this.#listener;
    if (this.#held === undefined || listener === undefined) return;
    this.#held = undefined;
    const wantsMore = listener.event(event);
    if (this.#end !== undefined) listener.ended(this.#end.error);
    else if (wantsMore) this.#below.resume();
  }
}
