/** What a KMS plugin and a stored value must hold to (apiserver: kmsv2/envelope.go). */
import { createHash } from "node:crypto";
import { isDns1123Subdomain } from "@quorate/kube-storage";
import { type EncryptedKey, type EncryptedObject, KeySource } from "./kms-messages.ts";

export const MAX_KEY_ID_BYTES = 1024;
export const MAX_ENCRYPTED_KEY_BYTES = 1024;
export const MAX_ANNOTATION_BYTES: number = 32 * 1024;

/** Throws Error for a key id that is empty or too long. */
export function checkKeyId(keyId: string): void {
  const size = Buffer.byteLength(keyId);
  if (size === 0) throw new Error("keyID is empty");
  if (size > MAX_KEY_ID_BYTES)
    throw new Error(`keyID is ${size} bytes, which exceeds the max size of ${MAX_KEY_ID_BYTES}`);
}

/** Throws Error for a key that a plugin may not return. */
export function checkEncryptedKey({ ciphertext, keyId, annotations }: EncryptedKey): void {
  const why = "failed to validate encrypted DEK source: encrypted DEK source is";
  const { length } = ciphertext;
  if (length === 0) throw new Error(`${why} empty`);
  if (length > MAX_ENCRYPTED_KEY_BYTES)
    throw new Error(
      `${why} ${length} bytes, which exceeds the max size of ${MAX_ENCRYPTED_KEY_BYTES}`,
    );
  try {
    checkKeyId(keyId);
  } catch (error) {
    throw new Error(`failed to validate key id: ${(error as Error).message}`);
  }
  let size = 0;
  for (const [key, value] of annotations) {
    size += Buffer.byteLength(key) + value.length;
    // A fully qualified name has at least two labels.
    if (isDns1123Subdomain(key).length > 0 || !key.includes("."))
      throw new Error(
        `failed to validate annotations: ${JSON.stringify(key)} is no fully qualified domain name`,
      );
  }
  if (size > MAX_ANNOTATION_BYTES)
    throw new Error(
      `failed to validate annotations: total size of annotations is ${size}, which exceeds the max size of ${MAX_ANNOTATION_BYTES}`,
    );
}

/** Throws Error for a stored value that none of our servers and none of Kubernetes' wrote. */
export function checkEncryptedObject(object: EncryptedObject): void {
  const { source, data } = object;
  if (source !== KeySource.AesGcmKey && source !== KeySource.HkdfSeed)
    throw new Error(`unknown encryptedDEKSourceType: ${source}`);
  if (data.length === 0) throw new Error("encrypted data is empty");
  checkEncryptedKey(object);
}

/** A key id for logs; it may be a secret of its operator. */
export function hashOf(keyId: string): string {
  return keyId === "" ? "" : `sha256:${createHash("sha256").update(keyId).digest("hex")}`;
}
