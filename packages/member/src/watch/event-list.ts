/**
 * The events that wait for a watch, in order. Watches of one key or prefix have the same ones at
 * the end of a turn, so lists are shared:
 *
 *     [] --(event 1)--> [1] --(event 2)--> [1, 2]        a thousand watches, two lists
 *
 * A list never changes. It remembers the one that came of it last, so each further watch that is
 * offered the same event gets that one; what a turn's watches send alike is joined once, and their
 * responses differ in the watch's id alone.
 */
import type { WatchEvent } from "./event.ts";
import type { WatchLimits } from "./limits.ts";

export class EventList {
  /** The list without its last event; undefined: that was the only one. */
  readonly before: EventList | undefined;
  readonly first: WatchEvent;
  readonly last: WatchEvent;
  readonly length: number;
  #next: EventList | undefined = undefined;
  #events: readonly WatchEvent[] | undefined = undefined;
  /** Undefined until it is asked for twice, null if the events take several responses. */
  #joined: Uint8Array | null | undefined = undefined;
  #wasAskedFor = false;

  constructor(before: EventList | undefined, event: WatchEvent) {
    this.before = before;
    this.first = before === undefined ? event : before.first;
    this.last = event;
    this.length = before === undefined ? 1 : before.length + 1;
  }

  /** This list with one more event behind. */
  and(event: WatchEvent): EventList {
    if (this.#next?.last !== event) this.#next = new EventList(this, event);
    return this.#next;
  }

  /** All events, the first first. */
  get events(): readonly WatchEvent[] {
    if (this.#events !== undefined) return this.#events;
    const events = new Array<WatchEvent>(this.length);
    let at = this.length;
    for (let list: EventList | undefined = this; list !== undefined; list = list.before)
      events[--at] = list.last;
    this.#events = events;
    return events;
  }

  /**
   * The encoded events as one piece, without what was before them, if there are several, they go
   * into one response, and another watch has asked before.
   */
  joined(limits: WatchLimits): Uint8Array | undefined {
    if (this.length < 2) return undefined;
    if (this.#wasAskedFor) this.#joined ??= join(this.events, limits);
    this.#wasAskedFor = true;
    return this.#joined ?? undefined;
  }
}

function join(events: readonly WatchEvent[], limits: WatchLimits): Uint8Array | null {
  let sizeBytes = 0;
  let revisions = 0;
  let last = 0;
  for (const { main, bytes } of events) {
    if (main !== last) revisions++;
    last = main;
    sizeBytes += bytes.length;
  }
  if (revisions > limits.maxResponseRevisions || sizeBytes > limits.maxResponseBytes) return null;
  const joined = new Uint8Array(sizeBytes);
  let at = 0;
  for (const { bytes } of events) {
    joined.set(bytes, at);
    at += bytes.length;
  }
  return joined;
}

/** Where lists begin. */
export class EventLists {
  #latest: EventList | undefined = undefined;

  /** The list of one event. */
  of(event: WatchEvent): EventList {
    if (this.#latest?.last !== event) this.#latest = new EventList(undefined, event);
    return this.#latest;
  }

  /** Lets go of the last one: the turn is over. */
  clear(): void {
    this.#latest = undefined;
  }
}
