/**
 * WatchResponse on the wire, in pieces that are shared between responses, and how events are cut
 * into responses.
 */
import { EMPTY, type ResponseHeader, type WatchId, WatchResponse, Writer } from "@quorate/proto";

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
