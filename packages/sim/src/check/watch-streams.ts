/**
 * Judges what watchers were sent: recorded streams against the events that the writes made,
 * revision by revision.
 *
 *   WATCH-1 ordered     revisions grow along a stream, and none is below where the watch began
 *   WATCH-2 atomic      all events of a revision that the watch covers come together
 *   WATCH-3 true        each event is one that the write of its revision made, as that made it
 *   WATCH-4 gap-free    nothing is left out, up to the last event, the last progress, and where the
 *                       stream must have come
 *
 * A revision whose write is not known (its outcome is unknown to clients, or a lease ended) takes
 * its events from the streams: they must agree with each other there, and the caller judges whether
 * such a write could have been.
 */
import { type ModelRequest, ModelState } from "../base/model.ts";

/**
 * One change of one key. Of a deletion only key and revision count: create and version are 0, the
 * value is empty.
 */
export interface WatchEvent {
  readonly type: "put" | "delete";
  readonly key: string;
  readonly value: string;
  readonly create: number;
  readonly mod: number;
  readonly version: number;
  /** The id of the lease that a put key hangs on, in decimal; undefined for none. */
  readonly lease?: string | undefined;
}

/**
 * One response (its fragments joined). Without events it reports progress: all up to its revision
 * has been sent.
 */
export interface WatchBatch {
  /** Of the response's header. */
  readonly revision: number;
  readonly events: readonly WatchEvent[];
}

/**
 * What one watch on one connection was sent. A watch that goes on elsewhere is another stream, from
 * another revision.
 */
export interface WatchStream {
  readonly name: string;
  /**
   * The keys that are watched: `key` alone where `end` is empty, else all from `key` and below
   * `end`.
   */
  readonly key: string;
  readonly end: string;
  /** The first revision that it was to send. */
  readonly from: number;
  readonly batches: readonly WatchBatch[];
  /**
   * It must have sent all up to this revision; 0 if nothing is known of that (its connection
   * broke).
   */
  readonly through: number;
}

/** The events of revisions. */
export type EventLog = ReadonlyMap<number, readonly WatchEvent[]>;

/**
 * The result of replaying: the events of each revision, and the state after the last; or why that
 * cannot be.
 */
export interface Replayed {
  readonly events: EventLog;
  readonly state: ModelState;
  readonly violation: string | undefined;
}

const show = ({ type, key, value, create, mod, version }: WatchEvent): string =>
  type === "delete"
    ? `delete ${key} at ${mod}`
    : `put ${key}=${value.slice(0, 24)} at ${mod} (created ${create}, version ${version})`;

function same(a: WatchEvent, b: WatchEvent): boolean {
  if (a.type !== b.type || a.key !== b.key || a.mod !== b.mod) return false;
  return (
    a.type === "delete" ||
    (a.value === b.value && a.create === b.create && a.version === b.version && a.lease === b.lease)
  );
}

/** The events between two states that follow each other, in the order of their keys. */
export function eventsBetween(before: ModelState, after: ModelState): WatchEvent[] {
  const events: WatchEvent[] = [];
  for (const [key, kv] of after.keys)
    if (kv.mod === after.revision) events.push({ type: "put", key, ...kv });
  for (const key of before.keys.keys()) {
    if (!after.keys.has(key))
      events.push({ type: "delete", key, value: "", create: 0, mod: after.revision, version: 0 });
  }
  return events.sort(byKey);
}

const byKey = (a: WatchEvent, b: WatchEvent): number =>
  a.key < b.key ? -1 : a.key > b.key ? 1 : 0;

/**
 * Replays the writes from `before` on up to revision `last`. Revisions without a known write take
 * the events that the streams have for them, all streams together.
 */
export function replay(
  before: ModelState,
  last: number,
  writes: ReadonlyMap<number, ModelRequest>,
  streams: readonly WatchStream[],
): Replayed {
  const seen = new Map<number, Map<string, WatchEvent>>();
  for (const { batches } of streams) {
    for (const { events } of batches) {
      for (const event of events) {
        let at = seen.get(event.mod);
        if (at === undefined) seen.set(event.mod, (at = new Map()));
        if (!at.has(event.key)) at.set(event.key, event);
      }
    }
  }
  const log = new Map<number, readonly WatchEvent[]>();
  let state = before;
  for (let revision = before.revision + 1; revision <= last; revision++) {
    const write = writes.get(revision);
    let next: ModelState;
    if (write !== undefined) {
      next = state.apply(write).next;
      if (next === state)
        return {
          events: log,
          state,
          violation: `WATCH-3: the write of revision ${revision} writes nothing`,
        };
    } else {
      const keys = new Map(state.keys);
      for (const { type, key, ...kv } of seen.get(revision)?.values() ?? []) {
        if (type === "put") keys.set(key, kv);
        else keys.delete(key);
      }
      next = new ModelState(revision, keys);
    }
    log.set(revision, eventsBetween(state, next));
    state = next;
  }
  return { events: log, state, violation: undefined };
}

/**
 * The first thing that is wrong with the streams, or undefined. Events of revisions beyond the log
 * are wrong.
 */
export function checkWatchStreams(
  log: EventLog,
  streams: readonly WatchStream[],
): string | undefined {
  for (const stream of streams) {
    const wrong = checkStream(log, stream);
    if (wrong !== undefined)
      return `${wrong} (watch ${stream.name} of ${JSON.stringify([stream.key, stream.end])} from ${stream.from})`;
  }
  return undefined;
}

function checkStream(
  log: EventLog,
  { key, end, from, batches, through }: WatchStream,
): string | undefined {
  const covers = (event: WatchEvent): boolean =>
    end === "" ? event.key === key : event.key >= key && (end === "\0" || event.key < end);
  /** All revisions up to this one have been dealt with. */
  let at = from - 1;
  /** What is to come between `at` and `revision` is none. */
  const skipTo = (revision: number): string | undefined => {
    for (let r = at + 1; r <= revision; r++) {
      const left = log.get(r)?.find(covers);
      if (left !== undefined) return `WATCH-4: nothing came of ${show(left)}`;
    }
    at = Math.max(at, revision);
    return undefined;
  };
  for (const { revision: header, events } of batches) {
    for (let i = 0; i < events.length; ) {
      const { mod } = events[i];
      const came: WatchEvent[] = [];
      while (i < events.length && events[i].mod === mod) came.push(events[i++]);
      const first = came[0];
      if (mod <= at) {
        const expected = log.get(mod)?.find((one) => same(one, first));
        const kind =
          expected !== undefined && mod === at && mod >= from
            ? "WATCH-2: its revision came in parts"
            : "WATCH-1: out of order";
        return `${kind}: ${show(first)} behind revision ${at}`;
      }
      if (mod > header) return `WATCH-1: ${show(first)} in a response of revision ${header}`;
      const gap = skipTo(mod - 1);
      if (gap !== undefined) return gap;
      const wrong = compare((log.get(mod) ?? []).filter(covers), came);
      if (wrong !== undefined) return wrong;
      at = mod;
    }
    if (events.length === 0) {
      const gap = skipTo(header);
      if (gap !== undefined) return `${gap}, and progress ${header} was notified`;
    }
  }
  const gap = skipTo(through);
  return gap === undefined ? undefined : `${gap}, and all up to ${through} must be there`;
}

/** All events of one revision, in any order of keys. */
function compare(expected: readonly WatchEvent[], came: readonly WatchEvent[]): string | undefined {
  const got = [...came].sort(byKey);
  for (let i = 0; i < Math.max(expected.length, got.length); i++) {
    const want = expected[i];
    const have = got[i];
    if (want === undefined || (have !== undefined && have.key < want.key))
      return `WATCH-3: ${show(have)} was never written`;
    if (have === undefined || have.key > want.key)
      return `WATCH-2: of its revision only a part came: ${show(want)} is missing`;
    if (!same(want, have)) return `WATCH-3: ${show(have)}, expected ${show(want)}`;
  }
  return undefined;
}
