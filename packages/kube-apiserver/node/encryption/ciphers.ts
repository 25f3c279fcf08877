/**
 * Encryption of values at rest, byte by byte as kube-apiserver's (apiserver:
 * pkg/storage/value/encrypt/{aes,secretbox}):
 *
 *     aesgcm     nonce (12) ciphertext tag (16); the key in the store is authenticated with it
 *     aescbc     iv (16) ciphertext with PKCS#7 padding
 *     secretbox  nonce (24) tag (16) ciphertext (XSalsa20 and Poly1305)
 *
 * Each value gets a random nonce from the system.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import type { ValueTransformer } from "@quorate/kube-storage";
import { concat, fromUtf8 } from "@quorate/proto";
import type { CipherName } from "../../src/encryption/encryption-config.ts";

const GCM_NONCE_BYTES = 12;
const GCM_TAG_BYTES = 16;
const BLOCK_BYTES = 16;
const SECRETBOX_NONCE_BYTES = 24;
const SECRETBOX_TAG_BYTES = 16;

const TOO_SHORT = "the stored data was shorter than the required size";

function aesGcm(secret: Uint8Array): ValueTransformer {
  const algorithm = `aes-${secret.length * 8}-gcm` as "aes-256-gcm";
  return {
    toStorage(key, value) {
      const nonce = randomBytes(GCM_NONCE_BYTES);
      const cipher = createCipheriv(algorithm, secret, nonce);
      cipher.setAAD(fromUtf8(key));
      return concat([nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()]);
    },

    fromStorage(key, value) {
      if (value.length < GCM_NONCE_BYTES + GCM_TAG_BYTES) throw new Error(TOO_SHORT);
      const end = value.length - GCM_TAG_BYTES;
      const nonce = value.subarray(0, GCM_NONCE_BYTES);
      const cipher = createDecipheriv(algorithm, secret, nonce, { authTagLength: GCM_TAG_BYTES });
      cipher.setAAD(fromUtf8(key));
      cipher.setAuthTag(value.subarray(end));
      const clear = cipher.update(value.subarray(GCM_NONCE_BYTES, end));
      try {
        return { value: concat([clear, cipher.final()]), stale: false };
      } catch {
        // Node's own text differs between versions.
        throw new Error("cipher: message authentication failed");
      }
    },
  };
}

function aesCbc(secret: Uint8Array): ValueTransformer {
  const algorithm = `aes-${secret.length * 8}-cbc`;
  return {
    toStorage(_key, value) {
      const iv = randomBytes(BLOCK_BYTES);
      const cipher = createCipheriv(algorithm, secret, iv);
      return concat([iv, cipher.update(value), cipher.final()]);
    },

    fromStorage(_key, value) {
      if (value.length < BLOCK_BYTES) throw new Error(TOO_SHORT);
      if (value.length % BLOCK_BYTES !== 0)
        throw new Error("the stored data is not a multiple of the block size");
      if (value.length === BLOCK_BYTES) throw new Error("invalid PKCS7 data (empty or not padded)");
      const cipher = createDecipheriv(algorithm, secret, value.subarray(0, BLOCK_BYTES));
      const clear = cipher.update(value.subarray(BLOCK_BYTES));
      try {
        return { value: concat([clear, cipher.final()]), stale: false };
      } catch {
        throw new Error("invalid padding on input");
      }
    },
  };
}

function secretbox(secret: Uint8Array): ValueTransformer {
  return {
    toStorage(_key, value) {
      const nonce = randomBytes(SECRETBOX_NONCE_BYTES);
      return concat([nonce, xsalsa20poly1305(secret, nonce).encrypt(value)]);
    },

    fromStorage(_key, value) {
      if (value.length < SECRETBOX_NONCE_BYTES + SECRETBOX_TAG_BYTES) throw new Error(TOO_SHORT);
      const nonce = value.subarray(0, SECRETBOX_NONCE_BYTES);
      const box = xsalsa20poly1305(secret, nonce);
      try {
        return { value: box.decrypt(value.subarray(SECRETBOX_NONCE_BYTES)), stale: false };
      } catch {
        throw new Error("secretbox: message authentication failed");
      }
    },
  };
}

/** Makes a transformer of a cipher's name and key. @param secret of a length that fits */
export const ciphers: Readonly<Record<CipherName, (secret: Uint8Array) => ValueTransformer>> = {
  aesgcm: aesGcm,
  aescbc: aesCbc,
  secretbox,
};
