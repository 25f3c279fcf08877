/**
 * Values of the cluster as objects and back: encryption, encoding, revisions as Kubernetes shows
 * them, and sizes for statistics. A parsed object takes several times the memory of its text, and
 * most stored objects are read rarely, so only the latest ones keep their parsed form.
 */
import { BriefMap, keepNewest } from "@quorate/host";
import { equals, fromUtf8, toUtf8, utf8Length } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import { badRequest } from "../meta/status.ts";
import type { ClusterRecord } from "./cluster-client.ts";
import type { ObjectCodec, ValueTransformer } from "./codec.ts";
import { corruptObject, internalStorageError, textOf } from "./errors.ts";
import type { Versioner } from "./interface.ts";
import type { StoredObject } from "./stored-object.ts";

/** A record as read. */
interface ReadValue {
  /** Decrypted, and a copy. */
  readonly data: Uint8Array;
  readonly stale: boolean;
  /** Its parsed form is known to exist. */
  readonly stored: VersionedObject;
}

/** After so many values the average forgets half of what it saw. */
const AVERAGE_VALUES = 100_000;

/** Objects of which the writer or the watch event has come, and the other one is expected. */
const MAX_AWAITED = 64;

export class EtcdValues {
  readonly #root: string;
  readonly #rootBytes: number;
  readonly #forms: ObjectForms;
  readonly #transformer: ValueTransformer;
  /**
   * By key in the store, the oldest first. The writer of an object and its watch event have the
   * same bytes: the second of them takes the first one's object, so that it is decoded once.
   */
  readonly #awaited = new BriefMap<string, VersionedObject>();
  #values = 0;
  #valueBytes = 0;

  /** @param root before all keys, such as "/registry" */
  constructor(root: string, forms: ObjectForms, transformer: ValueTransformer) {
    this.#root = root;
    this.#rootBytes = utf8Length(root);
    this.#forms = forms;
    this.#transformer = transformer;
  }

  /** Bytes of a value in the store; 0 before the first one was seen. */
  get averageBytes(): number {
    return this.#values === 0 ? 0 : Math.round(this.#valueBytes / this.#values);
  }

  /** The key in the store. @param key without the root */
  storeKey(key: string): string {
    return this.#root + key;
  }

  /** The key without the root. */
  keyOf(record: ClusterRecord): string {
    // A slice of the whole text would keep that in memory too.
    return toUtf8(record.key, this.#rootBytes);
  }

  /** Throws what the codec throws for an object that it cannot encode. */
  encode(object: KubeObject): Uint8Array {
    return this.#forms.codec.encode(object);
  }

  /** @param key without the root; @param data encoded, not encrypted; kept */
  stored(key: string, revision: number, data: Uint8Array): VersionedObject {
    return new VersionedObject(key, revision, data, this.#forms);
  }

  /** As `stored`, of what was just written: the object of its watch event, if that was earlier. */
  written(key: string, revision: number, data: Uint8Array): VersionedObject {
    const known = this.#awaited.get(key);
    // The latest is the last one of the map.
    this.#awaited.delete(key);
    if (known?.isMadeFrom(revision, data) === true) return known;
    const stored = this.stored(key, revision, data);
    this.#awaited.set(key, stored);
    keepNewest(this.#awaited, MAX_AWAITED);
    return stored;
  }

  /** Decrypts and parses a record. */
  read(record: ClusterRecord): Promise<ReadValue> {
    return this.#read(record, (key, value) => this.stored(key, record.modRevision, value));
  }

  /**
   * As `read`, of a watch event: the object of who wrote it here, if that was earlier.
   * @param revision the object's; a deleted one has that of its deletion
   */
  readEvent(record: ClusterRecord, revision: number): Promise<ReadValue> {
    return this.#read(record, (key, value) => this.written(key, revision, value));
  }

  async #read(
    record: ClusterRecord,
    storedOf: (key: string, value: Uint8Array) => VersionedObject,
  ): Promise<ReadValue> {
    const key = this.keyOf(record);
    const storeKey = this.storeKey(key);
    const { value, stale } = await this.#decrypted(storeKey, record.value);
    const stored = storedOf(key, value);
    try {
      stored.object();
    } catch (error) {
      throw corruptObject(storeKey, error);
    }
    return { data: value, stale, stored };
  }

  /** Encrypted for the store. @param key without the root */
  async encrypted(key: string, data: Uint8Array): Promise<Uint8Array> {
    const storeKey = this.storeKey(key);
    try {
      return await this.#transformer.toStorage(storeKey, data);
    } catch (error) {
      throw internalStorageError(storeKey, error);
    }
  }

  async #decrypted(
    storeKey: string,
    bytes: Uint8Array,
  ): Promise<{ value: Uint8Array; stale: boolean }> {
    this.#count(bytes.length);
    try {
      const { value, stale } = await this.#transformer.fromStorage(storeKey, bytes);
      // What comes out unchanged is a view of a whole response, which would stay in memory.
      return { value: value.buffer === bytes.buffer ? value.slice() : value, stale };
    } catch (error) {
      const message = `unable to transform key ${JSON.stringify(storeKey)}: ${textOf(error)}`;
      throw internalStorageError(storeKey, new Error(message, { cause: error }));
    }
  }

  #count(bytes: number): void {
    if (this.#values >= AVERAGE_VALUES) {
      this.#values /= 2;
      this.#valueBytes /= 2;
    }
    this.#values++;
    this.#valueBytes += bytes;
  }
}

/** The first key after `key`, so that [key, end) holds only that. @param key UTF-8 */
export function endOfKey(key: Uint8Array): Uint8Array {
  const end = new Uint8Array(key.length + 1);
  end.set(key);
  return end;
}

/** What all objects of a storage share. */
interface ObjectForms {
  readonly codec: ObjectCodec;
  readonly decoded: DecodedObjects;
}

/**
 * A stored object whose forms are made when they are wanted:
 *
 *     stored bytes --decode--> object --JSON.stringify--> JSON text
 *
 * The stored bytes go when there is JSON, from which the object can be made too. The object goes
 * when others are newer (DecodedObjects).
 */
export class VersionedObject implements StoredObject, Droppable {
  readonly key: string;
  readonly resourceVersion: number;
  readonly sizeBytes: number;
  readonly #forms: ObjectForms;
  /** Of the store before there is JSON. */
  #bytes: Uint8Array;
  #isJson = false;
  #object: KubeObject | undefined;

  /** @param bytes as stored, without encryption; kept */
  constructor(key: string, resourceVersion: number, bytes: Uint8Array, forms: ObjectForms) {
    this.key = key;
    this.resourceVersion = resourceVersion;
    this.sizeBytes = bytes.length;
    this.#bytes = bytes;
    this.#forms = forms;
  }

  /** @param bytes as stored, without encryption */
  isMadeFrom(revision: number, bytes: Uint8Array): boolean {
    if (revision !== this.resourceVersion || this.#isJson) return false;
    return equals(bytes, this.#bytes);
  }

  /** Throws TypeError where the stored bytes are no object. */
  object(): KubeObject {
    if (this.#object === undefined) {
      this.#object = this.#isJson
        ? (JSON.parse(toUtf8(this.#bytes)) as KubeObject)
        : objectVersioner.withResourceVersion(
            this.#forms.codec.decode(this.#bytes),
            this.resourceVersion,
          );
      this.#forms.decoded.add(this, this.#bytes.length);
    }
    return this.#object;
  }

  json(): Uint8Array {
    if (!this.#isJson) {
      this.#bytes = fromUtf8(JSON.stringify(this.object()));
      this.#isJson = true;
    }
    return this.#bytes;
  }

  dropDecoded(): void {
    this.#object = undefined;
  }
}

/** No revision of this program is as large, so all larger ones are equal. */
const LARGEST: number = Number.MAX_SAFE_INTEGER - 1;

const TOO_LARGE = "value out of range";
const NO_NUMBER = "invalid syntax";

/** A decimal text as a number; a text of what is wrong with it, in Go's words, otherwise. */
function parsed(text: string): number | string {
  const quoted = JSON.stringify(text);
  if (!/^[0-9]{1,40}$/.test(text)) return `strconv.ParseUint: parsing ${quoted}: ${NO_NUMBER}`;
  if (BigInt(text) >= 2n ** 64n) return `strconv.ParseUint: parsing ${quoted}: ${TOO_LARGE}`;
  return Math.min(Number(text), LARGEST);
}

/** The one Versioner: an object's revision is its metadata.resourceVersion. */
export const objectVersioner: Versioner = {
  withResourceVersion(object, revision) {
    const { resourceVersion: _, ...rest } = object.metadata ?? {};
    const metadata = revision === 0 ? rest : { ...rest, resourceVersion: String(revision) };
    return { ...object, metadata };
  },

  resourceVersionOf(object: KubeObject) {
    const text = object.metadata?.resourceVersion ?? "";
    if (text === "") return 0;
    const value = parsed(text);
    if (typeof value === "string") throw badRequest(value);
    return value;
  },

  parse(resourceVersion) {
    if (resourceVersion === "" || resourceVersion === "0") return 0;
    const value = parsed(resourceVersion);
    if (typeof value === "string")
      throw badRequest(
        `invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(resourceVersion)}: ${value}`,
      );
    return value;
  },
};

/** Something that can drop a form that it can make again. */
interface Droppable {
  dropDecoded(): void;
}

/**
 * Encoded bytes of the objects that keep their parsed form. With less, a large object that is being
 * written and one other drop each other's, and each step of the write parses again.
 */
const MAX_DECODED_BYTES: number = 1 << 20;

/** A queue of objects with parsed forms, bounded in bytes. One serves all storages of a server. */
export class DecodedObjects {
  readonly #maxBytes: number;
  /** A ring in the order of arrival; `#first` is the oldest. */
  readonly #queue: { item: Droppable; bytes: number }[] = [];
  #first = 0;
  #bytes = 0;

  /** @param maxBytes of the encoded forms */
  constructor(maxBytes = MAX_DECODED_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of the encoded forms of all objects that keep their parsed one. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `item` has a parsed form now. The oldest ones drop theirs, so that the sum fits. */
  add(item: Droppable, bytes: number): void {
    this.#queue.push({ item, bytes });
    this.#bytes += bytes;
    // The latest stays in any case: its caller works with it.
    while (this.#bytes > this.#maxBytes && this.#first < this.#queue.length - 1) {
      const oldest = this.#queue[this.#first];
      if (oldest === undefined) break;
      this.#first++;
      this.#bytes -= oldest.bytes;
      oldest.item.dropDecoded();
    }
    if (this.#first > 1024 && this.#first * 2 > this.#queue.length) {
      this.#queue.splice(0, this.#first);
      this.#first = 0;
    }
  }
}

/** All encrypted values begin with this; protobuf does with "k8s\0", and JSON with "{". */
const encryptedPrefix = fromUtf8("k8s:enc:");

/** Refuses encrypted values, so that another provider is tried. */
export const identityTransformer: ValueTransformer = {
  toStorage: (_key, value) => value,
  fromStorage(_key, value) {
    if (equals(value.subarray(0, encryptedPrefix.length), encryptedPrefix))
      throw new Error("identity transformer tried to read encrypted data");
    return { value, stale: false };
  },
};
