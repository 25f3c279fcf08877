/**
 * A change as watchers get it, and the responses that changes leave in. The bytes of a change are
 * made when the first watcher wants them and shared by all that follow, in whatever response they
 * leave: what is kept is the whole field of WatchResponse, tag and length before the mvccpb.Event.
 * The other fields of a response are pieces that responses share too.
 */
import {
  alloc,
  EMPTY,
  fromLatin1,
  KeyValue,
  putVarint,
  type ResponseHeader,
  varintSize,
  type WatchId,
  WatchResponse,
  Writer,
} from "@quorate/proto";
import type { CommonMessage } from "@quorate/rpc";
import type { Change } from "@quorate/store";
import type { WatchLimits } from "./limits.ts";

/** WatchResponse.events. */
const EVENTS_TAG = 0x5a;
const TYPE_TAG = 0x08;
const DELETE = 1;
const KV_TAG = 0x12;
const PREV_KV_TAG = 0x1a;

/** Bytes of a message beside its record, roughly; for counting what is held. */
const OBJECT_BYTES = 128;

const fieldSize = (length: number): number => 1 + varintSize(length) + length;

function encodeEvent(deleted: boolean, kv: Uint8Array, prevKv: Uint8Array | undefined): Uint8Array {
  const size =
    (deleted ? 2 : 0) +
    fieldSize(kv.length) +
    (prevKv === undefined ? 0 : fieldSize(prevKv.length));
  const bytes = alloc(fieldSize(size));
  let at = putVarint(bytes, 1, size);
  bytes[0] = EVENTS_TAG;
  if (deleted) {
    bytes[at++] = TYPE_TAG;
    bytes[at++] = DELETE;
  }
  bytes[at++] = KV_TAG;
  at = putVarint(bytes, at, kv.length);
  bytes.set(kv, at);
  at += kv.length;
  if (prevKv !== undefined) {
    bytes[at++] = PREV_KV_TAG;
    at = putVarint(bytes, at, prevKv.length);
    bytes.set(prevKv, at);
  }
  return bytes;
}

/** The record of the pair before an event; undefined where there was none, or it is compacted. */
export type PrevKv = (event: WatchEvent) => Uint8Array | undefined;

export class WatchEvent {
  readonly main: number;
  readonly key: string;
  readonly deleted: boolean;
  readonly #record: Uint8Array;
  #bytes: Uint8Array | undefined;
  #bytesWithPrev: Uint8Array | undefined;

  constructor({ main, key, record, deleted }: Change) {
    this.main = main;
    this.key = key;
    this.deleted = deleted;
    this.#record = record;
  }

  /** About what holding it costs in memory. */
  get heldBytes(): number {
    return OBJECT_BYTES + this.#record.length * 2;
  }

  /** As a field of WatchResponse. */
  get bytes(): Uint8Array {
    this.#bytes ??= this.#encode(undefined);
    return this.#bytes;
  }

  /**
   * As a field of WatchResponse, with the pair before it; `prevKv` is called for it the first time.
   */
  bytesWithPrev(prevKv: PrevKv): Uint8Array {
    if (this.#bytesWithPrev === undefined) {
      const prev = prevKv(this);
      this.#bytesWithPrev = prev === undefined ? this.bytes : this.#encode(prev);
    }
    return this.#bytesWithPrev;
  }

  #encode(prevKv: Uint8Array | undefined): Uint8Array {
    // The stored record of a deletion has only the key; watchers get the revision too (etcd:
    // kvsToEvents).
    const kv = this.deleted
      ? KeyValue.encode({ key: fromLatin1(this.key), modRevision: this.main })
      : this.#record;
    return encodeEvent(this.deleted, kv, prevKv);
  }
}

/** An event as a field of WatchResponse. @param prevKv for one with the pair before it */
export function bytesOf(event: WatchEvent, prevKv: PrevKv | undefined): Uint8Array {
  return prevKv === undefined ? event.bytes : event.bytesWithPrev(prevKv);
}

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
  /** With and without the pairs before the events. */
  #plain: EncodedList | undefined = undefined;
  #withPrev: EncodedList | undefined = undefined;

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

  /** Bytes of all events, encoded as `common` does. */
  sizeBytes(prevKv: PrevKv | undefined): number {
    const encoded = this.#encoded(prevKv);
    if (encoded.sizeBytes === undefined) {
      encoded.sizeBytes = 0;
      for (const event of this.events) encoded.sizeBytes += bytesOf(event, prevKv).length;
    }
    return encoded.sizeBytes;
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

  /**
   * What the responses with these events have in common, if they go into one: the same object while
   * the header is.
   * @param prevKv undefined: events are sent without the pairs before them
   */
  common(
    header: Uint8Array,
    prevKv: PrevKv | undefined,
    limits: WatchLimits,
  ): CommonMessage | undefined {
    const encoded = this.#encoded(prevKv);
    if (encoded.common === null) return undefined;
    if (encoded.common?.before === header) return encoded.common;
    const { events } = this;
    const after = events.map((event) => bytesOf(event, prevKv));
    const sizeBytes = sizeOfOne(events, after, limits);
    encoded.common =
      sizeBytes === undefined
        ? null
        : { before: header, after, sizeBytes: header.length + sizeBytes };
    return encoded.common ?? undefined;
  }

  #encoded(prevKv: PrevKv | undefined): EncodedList {
    if (prevKv === undefined) return (this.#plain ??= new EncodedList());
    return (this.#withPrev ??= new EncodedList());
  }
}

/** The events of a list in one of their two encodings, as far as somebody has asked. */
class EncodedList {
  /** The sum of their sizes. */
  sizeBytes: number | undefined = undefined;
  /** What their responses have in common; null if they take several. */
  common: CommonMessage | null | undefined = undefined;
}

/**
 * The size of encoded events that go into one response; undefined if they take several, or are many
 * bytes.
 */
function sizeOfOne(
  events: readonly WatchEvent[],
  encoded: readonly Uint8Array[],
  { maxResponseRevisions, maxResponseBytes }: WatchLimits,
): number | undefined {
  let sizeBytes = 0;
  let revisions = 0;
  let last = 0;
  for (let i = 0; i < events.length; i++) {
    const { main } = events[i];
    if (main !== last) revisions++;
    last = main;
    sizeBytes += encoded[i].length;
  }
  const isOne = revisions <= maxResponseRevisions && sizeBytes <= maxResponseBytes;
  return isOne ? sizeBytes : undefined;
}

function join(events: readonly WatchEvent[], limits: WatchLimits): Uint8Array | null {
  const encoded = events.map(({ bytes }) => bytes);
  const sizeBytes = sizeOfOne(events, encoded, limits);
  if (sizeBytes === undefined) return null;
  const joined = new Uint8Array(sizeBytes);
  let at = 0;
  for (const bytes of encoded) {
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

const WATCH_ID_TAG = 16;
const FRAGMENT_FIELD = new Uint8Array([0x38, 1]);

/** Ids of most watches are small: their fields are made once. */
const KEPT_IDS = 1024;
const idFields: Uint8Array[] = [EMPTY];
const writer = new Writer();

/** The field watch_id. */
export function idField(id: WatchId): Uint8Array {
  const kept = idFields[id as number];
  if (kept !== undefined) return kept;
  writer.reset();
  writer.uint32(WATCH_ID_TAG);
  writer.int64Wide(id);
  const made = writer.finish().slice();
  if (typeof id === "number" && id > 0 && id < KEPT_IDS) idFields[id] = made;
  return made;
}

/** The field header. */
export function headerField(header: ResponseHeader): Uint8Array {
  return WatchResponse.encode({ header });
}

/** One response. */
export function responsePieces(
  header: Uint8Array,
  id: Uint8Array,
  events: readonly Uint8Array[],
  more = false,
): Uint8Array[] {
  return more ? [header, id, FRAGMENT_FIELD, ...events] : [header, id, ...events];
}

/**
 * Cuts a response that has at least `maxBytes` into fragments below that, of one event at the least
 * each (etcd: sendFragments). Each is given with whether more follow.
 */
export function fragments(
  headBytes: number,
  events: readonly Uint8Array[],
  maxBytes: number,
  send: (events: readonly Uint8Array[], more: boolean) => void,
): void {
  let size = headBytes;
  for (const bytes of events) size += bytes.length;
  if (size < maxBytes || events.length < 2) {
    send(events, false);
    return;
  }
  let start = 0;
  let used = headBytes + FRAGMENT_FIELD.length;
  for (let i = 0; i < events.length; i++) {
    if (i > start && used + events[i].length >= maxBytes) {
      send(events.slice(start, i), true);
      start = i;
      used = headBytes + FRAGMENT_FIELD.length;
    }
    used += events[i].length;
  }
  send(events.slice(start), false);
}
