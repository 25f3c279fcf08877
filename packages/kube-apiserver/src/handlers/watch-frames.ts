/**
 * Events of watches as bytes.
 *
 *     JSON        {"type":"ADDED","object":OBJECT}\n
 *     protobuf    length (4 bytes, big-endian), WatchEvent {1: type, 2: {1: OBJECT, enveloped}}
 */

import type {
  KubeObject,
  ServedResource,
  Status,
  WatchEvent,
  WatchEventType,
} from "@quorate/kube-storage";
import { kubeObjectOf } from "@quorate/kube-storage";
import { defined, fromUtf8, putVarint, varintSize } from "@quorate/proto";
import type { MediaTarget, Negotiated } from "./negotiation.ts";
import { type IncludeObject, partialMetadata, tableOf, tableRow } from "./negotiation.ts";
import { envelopeOf } from "./send-object.ts";

/** The events of which encoded frames are kept, and their bytes. */
export const MAX_SHARED_FRAMES = 1024;
export const MAX_SHARED_FRAME_BYTES = 8 * 1024 * 1024;

type FrameType = WatchEventType | "ERROR";

/**
 * Frames of the latest events. Many watchers receive an event within a few turns of the event loop;
 * it is encoded once for all of them.
 */
export class SharedFrames {
  readonly #frames = new Map<WatchEvent, Uint8Array>();
  #sizeBytes = 0;

  /** The JSON frame of an event of the cache. */
  jsonFrame(event: WatchEvent): Uint8Array {
    const known = this.#frames.get(event);
    if (known !== undefined) return known;
    const frame = jsonFrame(event.type, event.object.json());
    this.#keep(event, frame);
    return frame;
  }

  #keep(event: WatchEvent, frame: Uint8Array): void {
    this.#frames.set(event, frame);
    this.#sizeBytes += frame.length;
    for (const [oldest, bytes] of this.#frames) {
      const isFull =
        this.#frames.size > MAX_SHARED_FRAMES || this.#sizeBytes > MAX_SHARED_FRAME_BYTES;
      if (!isFull) break;
      this.#frames.delete(oldest);
      this.#sizeBytes -= bytes.length;
    }
  }
}

const TAIL = fromUtf8("}\n");
const heads = new Map<FrameType, Uint8Array>();

function headOf(type: FrameType): Uint8Array {
  let head = heads.get(type);
  if (head === undefined) {
    head = fromUtf8(`{"type":"${type}","object":`).slice();
    heads.set(type, head);
  }
  return head;
}

function jsonFrame(type: FrameType, object: Uint8Array): Uint8Array {
  const head = headOf(type);
  const frame = new Uint8Array(head.length + object.length + TAIL.length);
  frame.set(head);
  frame.set(object, head.length);
  frame.set(TAIL, head.length + object.length);
  return frame;
}

/** Encodes the events of one watch. */
export interface FrameEncoder {
  readonly contentType: string;
  event(event: WatchEvent): Uint8Array;
  error(status: Status): Uint8Array;
}

/** What a transformation of watch events needs. */
export interface FrameDeps {
  readonly frames: SharedFrames;
  readonly nowMs: () => number;
}

export function frameEncoder(
  resource: ServedResource,
  { encoding, target }: Negotiated,
  include: IncludeObject,
  deps: FrameDeps,
): FrameEncoder {
  const transform = transformOf(resource, target, include, deps.nowMs);
  if (encoding === "protobuf") return protobufEncoder(resource, transform);
  const encode = (type: FrameType, value: unknown) =>
    jsonFrame(type, fromUtf8(JSON.stringify(value)));
  return {
    contentType: "application/json",
    event: (event) =>
      transform === undefined
        ? deps.frames.jsonFrame(event)
        : encode(event.type, transform(event.object.object(), event.type === "BOOKMARK")),
    error: (status) => encode("ERROR", status),
  };
}

type Transform = (object: KubeObject, isBookmark: boolean) => KubeObject;

function transformOf(
  resource: ServedResource,
  target: MediaTarget | undefined,
  include: IncludeObject,
  nowMs: () => number,
): Transform | undefined {
  if (target === undefined) return undefined;
  if (target.kind !== "Table") return (object) => partialMetadata(object, target);
  const table = defined(resource.table, "the table");
  // Only the first event has the columns.
  let columns: typeof table.columns | null = table.columns;
  return (object, isBookmark) => {
    const { resourceVersion } = object.metadata;
    const row = isBookmark
      ? { cells: table.columns.map(() => null), object: partialMetadata(object, target) }
      : tableRow(object, table, target, include, nowMs());
    const value = tableOf(target, resourceVersion ? { resourceVersion } : {}, columns, [row]);
    columns = null;
    return kubeObjectOf(value);
  };
}

function protobufEncoder(resource: ServedResource, transform: Transform | undefined): FrameEncoder {
  const enveloped = (value: KubeObject): Uint8Array => envelopeOf(value, resource);
  return {
    contentType: "application/vnd.kubernetes.protobuf;stream=watch",
    event: ({ type, object }) => {
      const plain = object.object();
      const value = transform?.(plain, type === "BOOKMARK") ?? plain;
      return protobufFrame(type, enveloped(value));
    },
    error: (status) => protobufFrame("ERROR", enveloped(kubeObjectOf(status))),
  };
}

function protobufFrame(type: FrameType, object: Uint8Array): Uint8Array {
  const name = fromUtf8(type);
  const rawBytes = 1 + varintSize(object.length) + object.length;
  const messageBytes = 2 + name.length + 1 + varintSize(rawBytes) + rawBytes;
  const frame = new Uint8Array(4 + messageBytes);
  new DataView(frame.buffer).setUint32(0, messageBytes);
  frame[4] = (1 << 3) | 2;
  frame[5] = name.length;
  frame.set(name, 6);
  let at = 6 + name.length;
  frame[at++] = (2 << 3) | 2;
  at = putVarint(frame, at, rawBytes);
  frame[at++] = (1 << 3) | 2;
  at = putVarint(frame, at, object.length);
  frame.set(object, at);
  return frame;
}
