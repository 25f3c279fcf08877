/** One object at one revision, in the forms that its readers want. */

import { fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";

/**
 * An object with the key and the revision it was read at. Immutable: caches, lists and watches
 * share it, and so its JSON text is encoded once for all responses.
 */
export interface StoredObject {
  /** The key below the root, such as "/configmaps/default/app". */
  readonly key: string;
  readonly resourceVersion: number;
  /** Length of the stored bytes, from which caches estimate memory. */
  readonly sizeBytes?: number | undefined;
  /** The object, metadata.resourceVersion included. Must not be changed. */
  object(): KubeObject;
  /** The same as JSON text in UTF-8, without a line end. Must not be changed. */
  json(): Uint8Array;
}

/** An object that is not read from the store but made here, such as a Scale or a bookmark. */
export class MadeObject implements StoredObject {
  readonly key: string;
  readonly resourceVersion: number;
  readonly #object: KubeObject;
  #json: Uint8Array | undefined;

  /** @param object with its metadata.resourceVersion; kept */
  constructor(key: string, resourceVersion: number, object: KubeObject) {
    this.key = key;
    this.resourceVersion = resourceVersion;
    this.#object = object;
  }

  object(): KubeObject {
    return this.#object;
  }

  json(): Uint8Array {
    this.#json ??= fromUtf8(JSON.stringify(this.#object));
    return this.#json;
  }
}
