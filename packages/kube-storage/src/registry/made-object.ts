/** An object that a storage above the store made of a stored one, such as a Scale. */
import { fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import type { StoredObject } from "../storage/stored-object.ts";

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
