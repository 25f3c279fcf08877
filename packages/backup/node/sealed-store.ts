/**
 * An object store whose objects are encrypted before they leave this machine. An object is
 *
 *     "QRMSEAL1"          8 bytes
 *     salt                32 random bytes; the object's key is HKDF-SHA-256 of the operator's key,
 *                         that salt, and the object's name
 *     frames              64 KiB of content each, the last one shorter or empty, by AES-256-GCM
 *                         with its tag of 16 bytes behind; the nonce is the number of the frame,
 *                         and 1 in its first byte for the last
 *
 * so that an object that was cut, reordered, changed, or put under another name is refused.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { ChunkQueue, concat, fromUtf8, toUtf8 } from "@quorate/proto";
import {
  type Content,
  type ObjectStore,
  ObjectStoreError,
  type StoredObject,
} from "../src/object-store.ts";

const MAGIC = fromUtf8("QRMSEAL1");
const SALT_BYTES = 32;
const HEAD_BYTES = MAGIC.length + SALT_BYTES;
const FRAME_BYTES = 64 * 1024;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/**
 * Parses the text of a key file: 32 bytes in hexadecimal. @throws Error that says how to make one
 */
export function parseSealingKey(text: string): Uint8Array {
  const digits = text.trim();
  if (!/^[0-9a-fA-F]{64}$/.test(digits))
    throw new Error("a key is 64 hexadecimal digits, as of: openssl rand -hex 32");
  return Buffer.from(digits, "hex");
}

/** The size of an object with so much content. */
export function sealedBytes(contentBytes: number): number {
  const frames = Math.max(1, Math.ceil(contentBytes / FRAME_BYTES));
  return HEAD_BYTES + contentBytes + frames * TAG_BYTES;
}

/** The size of the content of an object; undefined for a size that no object has. */
export function contentBytes(sealed: number): number | undefined {
  const frames = Math.ceil((sealed - HEAD_BYTES) / (FRAME_BYTES + TAG_BYTES));
  const size = sealed - HEAD_BYTES - frames * TAG_BYTES;
  return frames >= 1 && size >= 0 && sealedBytes(size) === sealed ? size : undefined;
}

export class SealedStore implements ObjectStore {
  readonly #store: ObjectStore;
  readonly #key: Uint8Array;

  /** @param key 32 bytes */
  constructor(store: ObjectStore, key: Uint8Array) {
    if (key.length !== KEY_BYTES) throw new RangeError(`a key has ${KEY_BYTES} bytes`);
    this.#store = store;
    this.#key = key;
  }

  get place(): string {
    return this.#store.place;
  }

  /** With the sizes of contents. Objects that were not sealed have their own size. */
  async list(): Promise<StoredObject[]> {
    const objects = await this.#store.list();
    return objects.map(({ name, sizeBytes }) => ({
      name,
      sizeBytes: contentBytes(sizeBytes) ?? sizeBytes,
    }));
  }

  put(name: string, sizeBytes: number, content: Content): Promise<void> {
    // One salt for all attempts, so that each yields the same bytes.
    const salt = randomBytes(SALT_BYTES);
    const key = this.#keyOf(name, salt);
    return this.#store.put(name, sealedBytes(sizeBytes), () => seal(key, salt, content()));
  }

  async *get(name: string): AsyncGenerator<Uint8Array> {
    let opener: Opener | undefined;
    const held = new ChunkQueue();
    for await (const chunk of this.#store.get(name)) {
      held.push(chunk);
      if (opener === undefined && held.sizeBytes >= HEAD_BYTES)
        opener = this.#opener(name, held.take(HEAD_BYTES));
      // What follows shows that a frame is not the last.
      while (opener !== undefined && held.sizeBytes > FRAME_BYTES + TAG_BYTES)
        yield opener.open(held.take(FRAME_BYTES + TAG_BYTES), false);
    }
    const rest = held.take(held.sizeBytes);
    yield (opener ?? this.#opener(name, rest)).open(rest, true);
  }

  remove(name: string): Promise<void> {
    return this.#store.remove(name);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #opener(name: string, head: Uint8Array): Opener {
    if (head.length < HEAD_BYTES || toUtf8(head.subarray(0, MAGIC.length)) !== toUtf8(MAGIC))
      throw new ObjectStoreError("Damaged", name, "it is not encrypted: leave the key out");
    return new Opener(name, this.#keyOf(name, head.subarray(MAGIC.length)));
  }

  #keyOf(name: string, salt: Uint8Array): Uint8Array {
    return new Uint8Array(hkdfSync("sha256", this.#key, salt, `quorate backup ${name}`, KEY_BYTES));
  }
}

function nonceOf(frame: number, isLast: boolean): Uint8Array {
  const nonce = Buffer.alloc(12);
  nonce[0] = isLast ? 1 : 0;
  nonce.writeUIntBE(frame, 6, 6);
  return nonce;
}

async function* seal(
  key: Uint8Array,
  salt: Uint8Array,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield concat([MAGIC, salt]);
  let frame = 0;
  const sealFrame = (bytes: Uint8Array, isLast: boolean): Uint8Array => {
    const cipher = createCipheriv("aes-256-gcm", key, nonceOf(frame++, isLast));
    return concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  };
  const held = new ChunkQueue();
  for await (const chunk of content) {
    held.push(chunk);
    while (held.sizeBytes > FRAME_BYTES) yield sealFrame(held.take(FRAME_BYTES), false);
  }
  yield sealFrame(held.take(held.sizeBytes), true);
}

/** Opens the frames of one object, in order. */
class Opener {
  readonly #name: string;
  readonly #key: Uint8Array;
  #frame = 0;

  constructor(name: string, key: Uint8Array) {
    this.#name = name;
    this.#key = key;
  }

  /** @throws ObjectStoreError for a frame that is not what was sealed */
  open(frame: Uint8Array, isLast: boolean): Uint8Array {
    const at = frame.length - TAG_BYTES;
    try {
      const nonce = nonceOf(this.#frame++, isLast);
      const decipher = createDecipheriv("aes-256-gcm", this.#key, nonce);
      decipher.setAuthTag(frame.subarray(at));
      return concat([decipher.update(frame.subarray(0, at)), decipher.final()]);
    } catch {
      const problem = "it was encrypted with another key, or is damaged";
      throw new ObjectStoreError("Damaged", this.#name, problem);
    }
  }
}
