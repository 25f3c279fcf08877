/**
 * A stored object whose forms are made when they are wanted:
 *
 *     stored bytes --decode--> object --JSON.stringify--> JSON text
 *
 * The stored bytes go when there is JSON, from which the object can be made too. The object goes
 * when others are newer (DecodedObjects).
 */
import { fromUtf8, toUtf8 } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import type { ObjectCodec } from "./codec.ts";
import type { DecodedObjects, Droppable } from "./decoded-objects.ts";
import type { StoredObject } from "./stored-object.ts";
import { objectVersioner } from "./versioner.ts";

/** What all objects of a storage share. */
export interface ObjectForms {
  readonly codec: ObjectCodec;
  readonly decoded: DecodedObjects;
}

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
