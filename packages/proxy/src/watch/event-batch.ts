/** The events of one response from upstream, made ready for many watches. */

import { fragments, headerField, idField, responsePieces } from "@quorate/member";
import {
  defined,
  EMPTY,
  Event,
  KeyValue,
  type ResponseHeader,
  WatchResponse,
} from "@quorate/proto";
import type { Receiver } from "./receiver.ts";

/** Longer responses go in fragments to a client that takes them (as etcd's members). */
export const MAX_FRAGMENT_BYTES = 2 * 1024 * 1024;

/** Removes the namespace from a key-value pair. */
export type PlainKeyValue = (bytes: Uint8Array) => Uint8Array;

export class EventBatch {
  /** Of the first and of the last event. */
  readonly firstRevision: number;
  readonly lastRevision: number;
  readonly length: number;
  readonly #header: Uint8Array;
  readonly #events: readonly Uint8Array[];
  /** All events as one piece of a response. */
  readonly #body: Uint8Array;

  /** @param events at least one, by revision */
  constructor(
    header: ResponseHeader | undefined,
    events: readonly Uint8Array[],
    plain: PlainKeyValue | undefined,
  ) {
    this.firstRevision = revisionOf(events[0] ?? EMPTY);
    this.lastRevision =
      events.length === 1 ? this.firstRevision : revisionOf(events.at(-1) ?? EMPTY);
    this.length = events.length;
    this.#header = header === undefined ? EMPTY : headerField(header);
    this.#events = plain === undefined ? events : events.map((bytes) => strip(bytes, plain));
    this.#body = WatchResponse.encode({ events: [...this.#events] });
  }

  /**
   * Sends a watch what is new for it: one response, or several fragments. False if its client does
   * not read; then nothing was sent.
   */
  sendTo(receiver: Receiver): boolean {
    const { stream, nextRevision, takesFragments } = receiver;
    const id = idField(receiver.id);
    const isWhole = nextRevision <= this.firstRevision;
    const isLong = takesFragments && this.#body.length >= MAX_FRAGMENT_BYTES;
    if (isWhole && !isLong) return stream.offer([this.#header, id, this.#body]);
    const fields = this.#events
      .filter((bytes) => isWhole || revisionOf(bytes) >= nextRevision)
      .map((bytes) => WatchResponse.encode({ events: [bytes] }));
    if (fields.length === 0) return true;
    if (!isLong) return stream.offer([this.#header, id, ...fields]);
    let isTaken: boolean | undefined;
    const headBytes = this.#header.length + id.length;
    fragments(headBytes, fields, MAX_FRAGMENT_BYTES, (part, more) => {
      const response = responsePieces(this.#header, id, part, more);
      // Behind its first fragment a response must be complete.
      if (isTaken === undefined) isTaken = stream.offer(response);
      else if (isTaken) stream.force(response);
    });
    return isTaken ?? true;
  }
}

function revisionOf(event: Uint8Array): number {
  return KeyValue.decode(defined(Event.decode(event).kv, "the kv")).modRevision;
}

function strip(bytes: Uint8Array, plain: PlainKeyValue): Uint8Array {
  const event = Event.decode(bytes);
  return Event.encode({
    type: event.type,
    kv: event.kv === undefined ? undefined : plain(event.kv),
    prevKv: event.prevKv === undefined ? undefined : plain(event.prevKv),
  });
}
