/**
 * Events that many watches are sent alike, joined once. Watches of one key or prefix have the same events at the end of a turn, and their
 * responses differ in the watch's id alone; without this each event would be copied for each watch.
 */
import type { WatchEvent } from "./event.ts";
import type { WatchLimits } from "./limits.ts";

export class JoinedEvents {
  readonly #limits: WatchLimits;
  /** The events that were asked for last. */
  #queue: readonly WatchEvent[] = [];
  /** They as one piece; undefined until they are asked for again, null if they take several responses. */
  #bytes: Uint8Array | null | undefined = undefined;

  constructor(limits: WatchLimits) {
    this.#limits = limits;
  }

  /**
   * The encoded events as one piece, without what was before them, if those asked for last were the same, several, and go into one
   * response. The queue must not change any more.
   */
  of(queue: readonly WatchEvent[]): Uint8Array | undefined {
    if (queue.length < 2) return undefined;
    if (!isSame(queue, this.#queue)) {
      this.#queue = queue;
      this.#bytes = undefined;
      return undefined;
    }
    if (this.#bytes === undefined) this.#bytes = this.#join();
    return this.#bytes ?? undefined;
  }

  /** Lets go of what was joined: the turn is over. */
  clear(): void {
    this.#queue = [];
    this.#bytes = undefined;
  }

  #join(): Uint8Array | null {
    let sizeBytes = 0;
    let revisions = 0;
    let last = 0;
    for (const { main, bytes } of this.#queue) {
      if (main !== last) revisions++;
      last = main;
      sizeBytes += bytes.length;
    }
    if (revisions > this.#limits.maxResponseRevisions || sizeBytes > this.#limits.maxResponseBytes) return null;
    const joined = new Uint8Array(sizeBytes);
    let at = 0;
    for (const { bytes } of this.#queue) {
      joined.set(bytes, at);
      at += bytes.length;
    }
    return joined;
  }
}

function isSame(a: readonly WatchEvent[], b: readonly WatchEvent[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
