/**
 * Encryption of values with a key of their own each, which a seed yields (apiserver:
 * pkg/storage/value/encrypt/aes/aes_extended_nonce.go):
 *
 *     info (32 random bytes)  nonce (12)  ciphertext  tag (16)
 *
 * The key is HKDF-SHA256's first block, expanded from the seed with `info`.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { Untransformed, ValueTransformer } from "@quorate/kube-storage";
import { concat } from "@quorate/proto";
import { ciphers } from "./ciphers.ts";

export const SEED_BYTES = 32;
const INFO_BYTES = 32;

/** The AES-256 key for `info` (RFC 5869, section 2.3, with one block). */
function derivedKey(seed: Uint8Array, info: Uint8Array): Uint8Array {
  return createHmac("sha256", seed).update(info).update(Uint8Array.of(1)).digest();
}

/** Throws Error for a seed that is too short. */
export function seedCipher(seed: Uint8Array): ValueTransformer {
  if (seed.length < SEED_BYTES)
    throw new Error(`invalid seed length ${seed.length} used for key generation`);
  return {
    async toStorage(key, value) {
      const info = randomBytes(INFO_BYTES);
      const cipher = ciphers.aesgcm(derivedKey(seed, info));
      return concat([info, await cipher.toStorage(key, value)]);
    },

    fromStorage(key, value): Untransformed | Promise<Untransformed> {
      if (value.length < INFO_BYTES)
        throw new Error("the stored data was shorter than the required size");
      const info = value.subarray(0, INFO_BYTES);
      return ciphers.aesgcm(derivedKey(seed, info)).fromStorage(key, value.subarray(INFO_BYTES));
    },
  };
}
