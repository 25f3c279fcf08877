/** A listener of a watch that keeps what it receives, and waits for more. */
import type { ApiError } from "../src/meta/status.ts";
import type { Watch, WatchEvent, WatchListener } from "../src/storage/interface.ts";

/** An event that does not come within this time is missing. */
const PATIENCE_MS = 10_000;

export class WatchRecorder implements WatchListener {
  readonly #watch: Watch;
  readonly #waiting: WatchEvent[] = [];
  #end: { readonly error: ApiError | undefined } | undefined;
  #wake: () => void = () => {};

  /** Starts the watch. */
  constructor(watch: Watch) {
    this.#watch = watch;
    watch.start(this);
  }

  event(event: WatchEvent): boolean {
    this.#waiting.push(event);
    this.#wake();
    return true;
  }

  ended(error: ApiError | undefined): void {
    this.#end = { error };
    this.#wake();
  }

  /** Events that have arrived and were not taken. */
  get waiting(): readonly WatchEvent[] {
    return this.#waiting;
  }

  /** The next event. Rejects where the watch ends first, or none comes. */
  async next(): Promise<WatchEvent> {
    await this.#until(() => this.#waiting.length > 0 || this.#end !== undefined, "event");
    const event = this.#waiting.shift();
    if (event === undefined) throw new Error("the watch ended", { cause: this.#end?.error });
    return event;
  }

  /** The next event that is no bookmark, as "TYPE name". */
  async nextText(): Promise<string> {
    for (;;) {
      const { type, object } = await this.next();
      if (type !== "BOOKMARK") return `${type} ${object.object().metadata.name}`;
    }
  }

  /** How the watch ended, after the events before its end. */
  async end(): Promise<ApiError | undefined> {
    await this.#until(() => this.#end !== undefined, "end");
    return this.#end!.error;
  }

  stop(): void {
    this.#watch.stop();
  }

  async #until(isDone: () => boolean, what: string): Promise<void> {
    let late: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      late = setTimeout(
        () => reject(new Error(`no ${what} within ${PATIENCE_MS} ms`)),
        PATIENCE_MS,
      );
    });
    try {
      while (!isDone())
        await Promise.race([
          tooLate,
          new Promise<void>((resolve) => {
            this.#wake = resolve;
          }),
        ]);
    } finally {
      clearTimeout(late);
    }
  }
}
