/** How objects are written to the store. */
import type { KubeObject } from "../meta/object.ts";

/**
 * Encodes and decodes the objects of one resource. `encode` leaves resourceVersion (and selfLink)
 * out; `decode` accepts both of Kubernetes' encodings, JSON and protobuf ("k8s\0").
 */
export interface ObjectCodec {
  encode(object: KubeObject): Uint8Array;
  /** Throws TypeError with the reason for bytes that are no such object. */
  decode(bytes: Uint8Array): KubeObject;
}

/** A value as read, and whether it should be written again with the present key. */
export interface Untransformed {
  readonly value: Uint8Array;
  readonly stale: boolean;
}

/**
 * Encrypts values at rest (apiserver: pkg/storage/value/transformer.go). The store's key is
 * authenticated with the value, so that a value moved to another key is refused.
 */
export interface ValueTransformer {
  toStorage(key: string, value: Uint8Array): Uint8Array | Promise<Uint8Array>;
  /** Rejects where no key fits, naming the key in the store and the provider. */
  fromStorage(key: string, value: Uint8Array): Untransformed | Promise<Untransformed>;
}
