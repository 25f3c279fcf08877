/**
 * A change as watchers get it. Its bytes are made when the first watcher wants them and shared by
 * all that follow, in whatever response they leave: what is kept is the whole field of
 * WatchResponse, tag and length before the mvccpb.Event.
 */
import { alloc, fromLatin1, KeyValue, putVarint, varintSize } from "@quorate/proto";
import type { Change } from "@quorate/store";

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
  bytesWithPrev(prevKv: (event: WatchEvent) => Uint8Array | undefined): Uint8Array {
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
