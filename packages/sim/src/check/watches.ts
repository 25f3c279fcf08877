/**
 * What a watch promises, looked at as each response comes in. Of the changes of its range, by the
 * model:
 *
 *   WATCH-1 no gap, no repeat   a response has exactly those from the watch's revision on to its
 *                               last, in order, with the right content
 *   WATCH-2 atomic              all of a revision come in one response, or in fragments of one
 *   WATCH-3 header              nothing up to a response's revision is missing, nor up to that of a
 *                               progress notification
 *   WATCH-4 compaction          a watch that needs what was compacted is notified, with a revision
 *                               that was compacted, and no other is
 *   WATCH-5 previous pairs      a watch that asks for them gets them, unless they were
 *                               compacted, and no other does
 */
import { defined, Event, Event_EventType, KeyValue, type WatchResponse } from "@quorate/proto";
import { toModelKv } from "../base/codec.ts";
import { type ModelEvent, type ModelRange, matches } from "../base/model.ts";
import { kvFields } from "../base/model-difference.ts";
import { violate } from "../base/violation.ts";
import type { Safety } from "./safety.ts";

/** A watch as its client knows it, over all streams that it was made on. */
export interface Watching {
  readonly name: string;
  /** An end of "\xff" stands for all keys from `key` on. */
  readonly range: ModelRange;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  readonly progressNotify: boolean;
  /**
   * The first revision that the client has not received in full; 0 before it knows where the watch
   * begins.
   */
  next: number;
  /** Events of fragments whose last has not come. */
  partial: Uint8Array[];
}

/** An event in a fixed form, for comparing. */
function expectedText(key: string, { now }: ModelEvent, main: number): string {
  return JSON.stringify(now === undefined ? ["delete", key, main] : kvFields({ key, ...now }));
}

function actualText(event: Event): string {
  const kv = toModelKv(event.kv ?? new Uint8Array(0));
  return JSON.stringify(
    event.type === Event_EventType.DELETE ? ["delete", kv.key, kv.mod] : kvFields(kv),
  );
}

/** The text of an event with nothing in the place of its value. */
function withoutValue(text: string): string {
  if (!text.startsWith("[")) return text;
  const [key, , ...rest] = JSON.parse(text) as unknown[];
  return JSON.stringify([key, "", ...rest]);
}

export class WatchCheck {
  readonly #safety: Safety;
  /** By revision. */
  readonly #events: (readonly ModelEvent[])[] = [];
  /** What was looked at, for the record. */
  readonly counts = { events: 0, responses: 0, progress: 0, compacted: 0 };

  constructor(safety: Safety) {
    this.#safety = safety;
  }

  /** The changes of a revision, in order. */
  #eventsOf(revision: number): readonly ModelEvent[] {
    let events = this.#events[revision];
    if (events === undefined) {
      const request = this.#safety.requestAt(revision);
      const before = this.#safety.stateAt(revision - 1);
      events = request === undefined || before === undefined ? [] : before.apply(request).events;
      this.#events[revision] = events;
    }
    return events;
  }

  /** The changes that a watch is to be notified of, up to a revision. */
  #expected(watch: Watching, last: number): { main: number; event: ModelEvent }[] {
    const found: { main: number; event: ModelEvent }[] = [];
    for (let main = Math.max(2, watch.next); main <= last; main++) {
      for (const event of this.#eventsOf(main)) {
        if (
          matches(watch.range, event.key) &&
          !(event.now === undefined ? watch.noDelete : watch.noPut)
        )
          found.push({ main, event });
      }
    }
    return found;
  }

  /** True if a watch has been notified of everything so far. */
  isUpToDate(watch: Watching): boolean {
    return watch.next > 0 && this.#expected(watch, this.#safety.lastState.revision).length === 0;
  }

  #checkRevision(watch: Watching, revision: number): void {
    const { revision: last } = this.#safety.lastState;
    if (revision > last)
      violate(
        "WATCH-3",
        `${watch.name} is notified of revision ${revision}, and no member has applied more than ${last}`,
      );
  }

  /** The answer to a watch's creation. */
  created(watch: Watching, response: WatchResponse): void {
    const { revision } = defined(response.header, "the header");
    this.#checkRevision(watch, revision);
    if (watch.next === 0) watch.next = revision + 1;
  }

  /**
   * A response with events. @param isAltered the member's store was made to differ: values are not
   * compared
   */
  onResponse(watch: Watching, response: WatchResponse, isAltered = false): void {
    if (response.fragment && !watch.fragment)
      violate("WATCH-2", `${watch.name} gets fragments and has not asked for them`);
    watch.partial.push(...response.events);
    if (response.fragment) return;
    const events = watch.partial.map((bytes) => Event.decode(bytes));
    watch.partial = [];
    const { revision } = defined(response.header, "the header");
    this.#checkRevision(watch, revision);
    const mains = events.map((event) => KeyValue.decode(defined(event.kv, "the kv")).modRevision);
    const last = mains[mains.length - 1];
    if (revision < last)
      violate(
        "WATCH-3",
        `${watch.name} is notified of revision ${last} under the header of ${revision}`,
      );
    this.#compare(watch, events, mains, revision, isAltered);
    this.counts.responses++;
    this.counts.events += events.length;
    watch.next = Math.max(watch.next, revision + 1);
  }

  #compare(
    watch: Watching,
    events: readonly Event[],
    mains: readonly number[],
    revision: number,
    isAltered: boolean,
  ): void {
    const expected = this.#expected(watch, revision);
    const from = `${watch.name}, from revision ${watch.next} to ${revision},`;
    for (let i = 0; i < Math.max(events.length, expected.length); i++) {
      const want =
        expected[i] === undefined
          ? "nothing more"
          : expectedText(expected[i].event.key, expected[i].event, expected[i].main);
      const got = events[i] === undefined ? "nothing more" : actualText(events[i]);
      if (want !== got && !(isAltered && withoutValue(want) === withoutValue(got))) {
        const property =
          events[i] === undefined && mains.includes(expected[i].main) ? "WATCH-2" : "WATCH-1";
        violate(property, `${from} is delivered as event ${i + 1} ${got}, expected ${want}`);
      }
      if (!isAltered) this.#comparePrevious(watch, events[i], expected[i].event, expected[i].main);
    }
  }

  #comparePrevious(
    watch: Watching,
    { prevKv }: Event,
    { key, before }: ModelEvent,
    main: number,
  ): void {
    const has = prevKv !== undefined && prevKv.length > 0;
    const mayMiss =
      !watch.prevKv || before === undefined || this.#safety.compactRevision > main - 1;
    if (!has) {
      if (!mayMiss)
        violate(
          "WATCH-5",
          `${watch.name} is not notified of what ${key} was before revision ${main}`,
        );
      return;
    }
    const got = JSON.stringify(kvFields(toModelKv(prevKv)));
    const want =
      watch.prevKv && before !== undefined
        ? JSON.stringify(kvFields({ key, ...before }))
        : "nothing";
    if (got !== want)
      violate(
        "WATCH-5",
        `${watch.name} is notified that ${key} was ${got} before revision ${main}, expected ${want}`,
      );
  }

  /** A progress notification. */
  progress(watch: Watching, response: WatchResponse): void {
    const { revision } = defined(response.header, "the header");
    if (watch.next === 0) return;
    this.#checkRevision(watch, revision);
    const [missing] = this.#expected(watch, revision);
    if (missing !== undefined) {
      const text = expectedText(missing.event.key, missing.event, missing.main);
      violate(
        "WATCH-3",
        `${watch.name} is notified of progress to ${revision}, and not of ${text} at ${missing.main}`,
      );
    }
    this.counts.progress++;
    watch.next = Math.max(watch.next, revision + 1);
  }

  /** The end of a watch by a compaction; it may begin again at the revision that this returns. */
  compacted(watch: Watching, response: WatchResponse): void {
    const { compactRevision } = response;
    if (!this.#safety.compacted.has(compactRevision) || watch.next >= compactRevision) {
      violate(
        "WATCH-4",
        `${watch.name} is cancelled at revision ${watch.next} by a compaction of ${compactRevision}`,
      );
    }
    this.counts.compacted++;
    watch.next = compactRevision;
    watch.partial = [];
  }
}

/** The key of a range's end on the wire. */
export function wireEnd({ end }: ModelRange): string {
  return end === "\xff" ? "\0" : end;
}
