/**
 * Kubernetes' protobuf around objects (apimachinery: pkg/runtime/generated.proto):
 *
 *     object     "k8s\0" Unknown
 *     Unknown    1: TypeMeta { 1: apiVersion, 2: kind }, 2: the object's own message,
 *                3: content encoding "", 4: content type ""
 *     watch      for each event: 4 bytes big-endian length, WatchEvent
 *     WatchEvent 1: type, 2: RawExtension { 1: object, with "k8s\0" }
 */
import { concat, Reader, varintSize, WireError, Writer, writeU32BE } from "@quorate/proto";

const PREFIX = Uint8Array.of(0x6b, 0x38, 0x73, 0);
/** Work of decoding one object, in the reader's units; 3 MiB of the smallest fields need less. */
const MAX_READ_WORK = 32 * 1024 * 1024;

export interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  readonly contentType: string;
  /** The object's own message; a view of the input. */
  readonly raw: Uint8Array;
}

/** Whether bytes begin as protobuf of Kubernetes does. */
export function isProtobuf(bytes: Uint8Array): boolean {
  return PREFIX.every((byte, at) => bytes[at] === byte);
}

/** A reader with a limit of work. */
export function readerOf(bytes: Uint8Array): Reader {
  return new Reader(bytes, MAX_READ_WORK);
}

/** Reads the envelope. Throws WireError. */
export function openEnvelope(bytes: Uint8Array): Envelope {
  if (!isProtobuf(bytes)) throw new WireError("no protobuf of Kubernetes", 0);
  const reader = readerOf(bytes);
  reader.pos = PREFIX.length;
  const found = { apiVersion: "", kind: "", contentType: "", raw: new Uint8Array(0) };
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (tag === 10) {
      const outer = reader.enter();
      while (reader.pos < reader.end) {
        const inner = reader.tag();
        if (inner === 10) found.apiVersion = reader.string();
        else if (inner === 18) found.kind = reader.string();
        else reader.skip(inner, {});
      }
      reader.leave(outer);
    } else if (tag === 18) found.raw = new Uint8Array(reader.view());
    else if (tag === 34) found.contentType = reader.string();
    else reader.skip(tag, {});
  }
  return found;
}

/** What stands before and after the object's own message, and the tag and length between. */
function envelopeParts(
  apiVersion: string,
  kind: string,
  rawSize: number,
): [Uint8Array, Uint8Array] {
  const writer = new Writer();
  writer.uint32(10);
  const start = writer.open();
  writer.uint32(10);
  writer.string(apiVersion);
  writer.uint32(18);
  writer.string(kind);
  writer.close(start);
  writer.uint32(18);
  writer.uint32(rawSize);
  return [concat([PREFIX, writer.finish()]), Uint8Array.of(26, 0, 34, 0)];
}

/** The object's own message, with its envelope. */
export function closeEnvelope(apiVersion: string, kind: string, raw: Uint8Array): Uint8Array {
  const [before, after] = envelopeParts(apiVersion, kind, raw.length);
  return concat([before, raw, after]);
}

/** metav1.ListMeta. */
export interface ListMeta {
  readonly resourceVersion: string;
  readonly continueToken: string;
  readonly remainingItemCount: number | undefined;
}

/**
 * A list as protobuf, in chunks, so that a long one need not be copied or sent at once.
 * @param items the items' own messages, without envelopes
 */
export function* listChunks(
  apiVersion: string,
  listKind: string,
  meta: ListMeta,
  items: readonly Uint8Array[],
): Generator<Uint8Array> {
  const writer = new Writer();
  writer.uint32(10);
  const start = writer.open();
  for (const [number, text] of [
    [1, ""],
    [2, meta.resourceVersion],
    [3, meta.continueToken],
  ] as const) {
    writer.uint32((number << 3) | 2);
    writer.string(text);
  }
  if (meta.remainingItemCount !== undefined) {
    writer.uint32(4 << 3);
    writer.int64(meta.remainingItemCount);
  }
  writer.close(start);
  const head = writer.finish();
  let size = head.length;
  for (const item of items) size += 1 + varintSize(item.length) + item.length;
  const [before, after] = envelopeParts(apiVersion, listKind, size);
  yield before;
  yield head;
  for (const item of items) {
    const tag = new Writer();
    tag.uint32(18);
    tag.uint32(item.length);
    yield tag.finish();
    yield item;
  }
  yield after;
}

/**
 * One event of a watch as protobuf, its length included.
 * @param object with its envelope
 */
export function watchFrame(type: string, object: Uint8Array): Uint8Array {
  const writer = new Writer();
  writer.uint32(10);
  writer.string(type);
  writer.uint32(18);
  const start = writer.open();
  writer.uint32(10);
  writer.view(object);
  writer.close(start);
  const event = writer.finish();
  const length = new Uint8Array(4);
  writeU32BE(length, event.length, 0);
  return concat([length, event]);
}
