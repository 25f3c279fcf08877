/**
 * Messages of the KMS v2 protocol (k8s.io/kms: apis/v2/api.proto) and of values that it protects
 * (apiserver: pkg/storage/value/encrypt/envelope/kmsv2/v2/api.proto):
 *
 *     StatusResponse   1 version  2 healthz  3 key_id
 *     EncryptRequest   1 plaintext  2 uid          EncryptResponse  1 ciphertext  2 key_id
 *                                                                   3 annotations
 *     DecryptRequest   1 ciphertext  2 uid         DecryptResponse  1 plaintext
 *                      3 key_id  4 annotations
 *     EncryptedObject  1 encryptedData  2 keyID  3 encryptedDEKSource  4 annotations
 *                      5 encryptedDEKSourceType
 */
import { concat, fromUtf8, putVarint, Reader, toUtf8, varintSize } from "@quorate/proto";

const EMPTY = new Uint8Array(0);
const DELIMITED = 2;
/** Entries of an annotation map; more are refused. */
export const MAX_ANNOTATIONS = 1000;

/** Fields of one message, each annotation being one; more are refused. */
export const MAX_FIELDS = 1024;

export type Annotations = ReadonlyMap<string, Uint8Array>;

/** A field of bytes; empty ones are left out. */
function bytesField(number: number, value: Uint8Array): Uint8Array {
  if (value.length === 0) return EMPTY;
  const bytes = new Uint8Array(1 + varintSize(value.length) + value.length);
  bytes[0] = (number << 3) | DELIMITED;
  bytes.set(value, putVarint(bytes, 1, value.length));
  return bytes;
}

/** In the order of their keys: equal maps have equal bytes. */
function annotationFields(number: number, annotations: Annotations): Uint8Array[] {
  const sorted = [...annotations].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([key, value]) =>
    bytesField(number, concat([bytesField(1, fromUtf8(key)), bytesField(2, value)])),
  );
}

/** The fields of a message; unknown ones are among them. Throws WireError. */
function fieldsOf(bytes: Uint8Array): {
  readonly delimited: ReadonlyMap<number, readonly Uint8Array[]>;
  readonly numbers: ReadonlyMap<number, number>;
} {
  const reader = new Reader(bytes);
  const delimited = new Map<number, Uint8Array[]>();
  const numbers = new Map<number, number>();
  for (let count = 0; reader.pos < reader.end; count++) {
    if (count === MAX_FIELDS) throw new Error(`more than ${MAX_FIELDS} fields in a message`);
    const tag = reader.tag();
    const number = tag >>> 3;
    if ((tag & 7) === DELIMITED) {
      const all = delimited.get(number) ?? [];
      all.push(reader.view().slice());
      delimited.set(number, all);
    } else if ((tag & 7) === 0) numbers.set(number, Number(reader.uint64()));
    else reader.skip(tag, {});
  }
  return { delimited, numbers };
}

function annotationsOf(entries: readonly Uint8Array[] = []): Annotations {
  if (entries.length > MAX_ANNOTATIONS) throw new Error(`more than ${MAX_ANNOTATIONS} annotations`);
  return new Map(
    entries.map((entry) => {
      const { delimited } = fieldsOf(entry);
      return [toUtf8(delimited.get(1)?.at(-1) ?? EMPTY), delimited.get(2)?.at(-1) ?? EMPTY];
    }),
  );
}

export interface KmsStatus {
  readonly version: string;
  readonly healthz: string;
  readonly keyId: string;
}

export function decodeStatus(bytes: Uint8Array): KmsStatus {
  const { delimited } = fieldsOf(bytes);
  const text = (number: number): string => toUtf8(delimited.get(number)?.at(-1) ?? EMPTY);
  return { version: text(1), healthz: text(2), keyId: text(3) };
}

export function encodeStatus({ version, healthz, keyId }: KmsStatus): Uint8Array {
  const texts = [version, healthz, keyId].map((text, at) => bytesField(at + 1, fromUtf8(text)));
  return concat(texts);
}

export interface EncryptedKey {
  readonly ciphertext: Uint8Array;
  readonly keyId: string;
  readonly annotations: Annotations;
}

export function encodeEncryptRequest(plaintext: Uint8Array, uid: string): Uint8Array {
  return concat([bytesField(1, plaintext), bytesField(2, fromUtf8(uid))]);
}

export function decodeEncryptRequest(bytes: Uint8Array): Uint8Array {
  return fieldsOf(bytes).delimited.get(1)?.at(-1) ?? EMPTY;
}

export function decodeEncryptResponse(bytes: Uint8Array): EncryptedKey {
  const { delimited } = fieldsOf(bytes);
  return {
    ciphertext: delimited.get(1)?.at(-1) ?? EMPTY,
    keyId: toUtf8(delimited.get(2)?.at(-1) ?? EMPTY),
    annotations: annotationsOf(delimited.get(3)),
  };
}

export function encodeEncryptResponse(key: EncryptedKey): Uint8Array {
  const { ciphertext, keyId, annotations } = key;
  return concat([
    bytesField(1, ciphertext),
    bytesField(2, fromUtf8(keyId)),
    ...annotationFields(3, annotations),
  ]);
}

export function encodeDecryptRequest(key: EncryptedKey, uid: string): Uint8Array {
  const { ciphertext, keyId, annotations } = key;
  return concat([
    bytesField(1, ciphertext),
    bytesField(2, fromUtf8(uid)),
    bytesField(3, fromUtf8(keyId)),
    ...annotationFields(4, annotations),
  ]);
}

export function decodeDecryptRequest(bytes: Uint8Array): EncryptedKey {
  const { delimited } = fieldsOf(bytes);
  return {
    ciphertext: delimited.get(1)?.at(-1) ?? EMPTY,
    keyId: toUtf8(delimited.get(3)?.at(-1) ?? EMPTY),
    annotations: annotationsOf(delimited.get(4)),
  };
}

/** A response with one field of bytes. */
export function encodePlaintext(plaintext: Uint8Array): Uint8Array {
  return bytesField(1, plaintext);
}

export function decodePlaintext(bytes: Uint8Array): Uint8Array {
  return fieldsOf(bytes).delimited.get(1)?.at(-1) ?? EMPTY;
}

/** How the plaintext of the encrypted key becomes the key of a value. */
export const KeySource = { AesGcmKey: 0, HkdfSeed: 1 } as const;

/** A value at rest. */
export interface EncryptedObject extends EncryptedKey {
  readonly data: Uint8Array;
  readonly source: number;
}

export function encodeEncryptedObject(object: EncryptedObject): Uint8Array {
  const { data, keyId, ciphertext, annotations, source } = object;
  return concat([
    bytesField(1, data),
    bytesField(2, fromUtf8(keyId)),
    bytesField(3, ciphertext),
    ...annotationFields(4, annotations),
    source === 0 ? EMPTY : Uint8Array.of(5 << 3, source),
  ]);
}

export function decodeEncryptedObject(bytes: Uint8Array): EncryptedObject {
  const { delimited, numbers } = fieldsOf(bytes);
  return {
    data: delimited.get(1)?.at(-1) ?? EMPTY,
    keyId: toUtf8(delimited.get(2)?.at(-1) ?? EMPTY),
    ciphertext: delimited.get(3)?.at(-1) ?? EMPTY,
    annotations: annotationsOf(delimited.get(4)),
    source: numbers.get(5) ?? 0,
  };
}
