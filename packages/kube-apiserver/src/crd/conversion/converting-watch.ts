/** A watch whose objects are converted, in order. */
import type {
  ApiError,
  StoredObject,
  Watch,
  WatchEvent,
  WatchListener,
} from "@quorate/kube-storage";

type Convert = (
  items: readonly StoredObject[],
) => readonly StoredObject[] | Promise<readonly StoredObject[]>;

/** More events do not wait for their conversion: the watch below is held up. */
export const MAX_WAITING_EVENTS = 100;

export class ConvertingWatch implements Watch {
  readonly #watch: Watch;
  readonly #convert: Convert;
  readonly #waiting: WatchEvent[] = [];
  #listener: WatchListener | undefined;
  #isConverting = false;
  /** The listener wants no more until `resume`. */
  #isHeld = false;
  #holdsBelow = false;
  #isStopped = false;
  #end: { readonly error: ApiError | undefined } | undefined;

  constructor(watch: Watch, convert: Convert) {
    this.#watch = watch;
    this.#convert = convert;
  }

  start(listener: WatchListener): void {
    this.#listener = listener;
    this.#watch.start({
      event: (event) => this.#arrived(event),
      ended: (error) => {
        this.#end = { error };
        this.#drain();
      },
    });
  }

  resume(): void {
    this.#isHeld = false;
    this.#drain();
  }

  stop(): void {
    this.#isStopped = true;
    this.#waiting.length = 0;
    this.#watch.stop();
  }

  #arrived(event: WatchEvent): boolean {
    this.#waiting.push(event);
    this.#drain();
    const takesMore = !this.#isHeld && this.#waiting.length < MAX_WAITING_EVENTS;
    this.#holdsBelow = !takesMore;
    return takesMore;
  }

  /** Delivers what waits, as far as conversion and the listener allow. */
  #drain(): void {
    while (!this.#isConverting && !this.#isHeld && !this.#isStopped && this.#waiting.length > 0) {
      const events = this.#waiting.slice();
      const objects = this.#try(events.map((event) => event.object));
      if (objects === undefined) return;
      if (objects instanceof Promise) {
        this.#later(objects);
        return;
      }
      this.#deliver(objects);
    }
    if (this.#isConverting || this.#isStopped || this.#isHeld) return;
    if (this.#end !== undefined) this.#finish(this.#end.error);
    else if (this.#holdsBelow) {
      this.#holdsBelow = false;
      this.#watch.resume();
    }
  }

  #try(objects: readonly StoredObject[]) {
    try {
      return this.#convert(objects);
    } catch (error) {
      this.#fail(error as ApiError);
      return undefined;
    }
  }

  #later(objects: Promise<readonly StoredObject[]>): void {
    this.#isConverting = true;
    objects.then(
      (converted) => {
        this.#isConverting = false;
        if (this.#isStopped) return;
        this.#deliver(converted);
        this.#drain();
      },
      (error: ApiError) => {
        this.#isConverting = false;
        this.#fail(error);
      },
    );
  }

  /** The events whose objects these are. What a held listener does not take keeps waiting. */
  #deliver(objects: readonly StoredObject[]): void {
    for (const object of objects) {
      if (this.#isHeld || this.#isStopped) return;
      const event = this.#waiting.shift();
      if (event === undefined) return;
      const shown = object === event.object ? event : { type: event.type, object };
      if (this.#listener?.event(shown) === false) this.#isHeld = true;
    }
  }

  #fail(error: ApiError): void {
    if (this.#isStopped) return;
    this.#watch.stop();
    this.#finish(error);
  }

  #finish(error: ApiError | undefined): void {
    this.#isStopped = true;
    this.#waiting.length = 0;
    this.#listener?.ended(error);
  }
}
