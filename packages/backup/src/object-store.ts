/**
 * A place for the files of a backup besides a directory: objects by name, written whole.
 * node/s3-store.ts is one in an object store of Amazon's protocol.
 */
import { ChunkQueue, CodedError } from "@quorate/proto";

/**
 * Why an object store did not do what was asked:
 * - Refused: it understood, and another attempt will get the same response.
 * - Missing: there is no such object.
 * - Unavailable: several attempts failed; a later one may not.
 * - Damaged: an object is not what was written.
 */
export type ObjectStoreErrorCode = "Refused" | "Missing" | "Unavailable" | "Damaged";

/** An operating error of an object store, with the object that it is about. */
export class ObjectStoreError extends CodedError<ObjectStoreErrorCode> {
  constructor(code: ObjectStoreErrorCode, name: string, problem: string) {
    super("ObjectStoreError", code, `${name}: ${problem}`);
  }
}

export interface StoredObject {
  readonly name: string;
  readonly sizeBytes: number;
}

/** The bytes of an object, from the first on. */
export type Content = () => AsyncIterable<Uint8Array>;

/** All methods reject with ObjectStoreError. */
export interface ObjectStore {
  /** For reports: where it is, such as s3://bucket/prefix. */
  readonly place: string;
  /** All objects, in no order. */
  list(): Promise<StoredObject[]>;
  /**
   * Stores an object; one of that name is replaced at once or not at all.
   * @param content yields the same `sizeBytes` bytes at each call
   */
  put(name: string, sizeBytes: number, content: Content): Promise<void>;
  /** The content, from its begin to its end. */
  get(name: string): AsyncIterable<Uint8Array>;
  /** Removes an object; does nothing if there is none. */
  remove(name: string): Promise<void>;
  /** Closes its connections; requests under way fail. */
  close(): Promise<void>;
}

/** All chunks as one; undefined where they are more than `maxBytes`. */
export async function collect(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const collected = new ChunkQueue();
  for await (const chunk of chunks) {
    collected.push(chunk);
    if (collected.sizeBytes > maxBytes) return undefined;
  }
  return collected.take(collected.sizeBytes);
}

/** The content of a small object. */
export async function readObject(store: ObjectStore, name: string): Promise<Uint8Array> {
  const content = await collect(store.get(name), MAX_SMALL_BYTES);
  if (content !== undefined) return content;
  throw new ObjectStoreError("Damaged", name, `more than ${MAX_SMALL_BYTES} bytes`);
}

const MAX_SMALL_BYTES = 64 * 1024;
