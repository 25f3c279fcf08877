/**
 * A KMS v2 provider (apiserver: pkg/server/options/encryptionconfig/config.go, kmsv2/envelope.go).
 * A seed of this server encrypts values; the plugin encrypts the seed, which is stored with each
 * value. The plugin's status is read each minute: a new key id makes a new seed, and while the
 * plugin fails, values are written for three minutes more with the old one, and read for as long as
 * their keys are in memory.
 *
 *     status ok, same key    -> the seed is good for 3 more minutes
 *     status ok, another key -> new seed, encrypted by the plugin
 *     no status              -> retried each 10 s; the health check "kms-providers" fails
 */
import { createHash, createHmac, randomBytes } from "node:crypto";
import { type Clock, keepNewest, type Logger, type Timer } from "@quorate/host";
import {
  isDns1123Subdomain,
  type Untransformed,
  type ValueTransformer,
} from "@quorate/kube-storage";
import { concat } from "@quorate/proto";
import { ciphers } from "./ciphers.ts";
import {
  decodeEncryptedObject,
  type EncryptedKey,
  type EncryptedObject,
  encodeEncryptedObject,
  KeySource,
} from "./kms-messages.ts";
import type { KmsService } from "./kms-plugin-client.ts";

export const STATUS_PERIOD_MS = 60_000;
export const RETRY_PERIOD_MS = 10_000;
/** A seed encrypts for so long after the plugin was well last. */
export const SEED_LIFE_MS = 180_000;
/** Characters of a plugin's text in errors and in the log. */
const MAX_SHOWN_CHARS = 256;
/** Decrypted keys that are kept; the one that was used least recently goes first. */
export const MAX_KEYS = 1000;

/** The seed that values are written with. */
interface WriteKey {
  readonly key: EncryptedKey;
  readonly cipher: ValueTransformer;
  /** Monotonic time from which on it may not be used. */
  readonly expiresMs: number;
}

export interface KmsProviderDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

export class KmsProvider implements ValueTransformer {
  readonly name: string;
  readonly #service: KmsService;
  readonly #deps: KmsProviderDeps;
  /** Decrypted keys by their encrypted form; calls for one key share one decryption. */
  readonly #keys = new Map<string, Promise<ValueTransformer>>();
  #present: WriteKey | undefined;
  #version = "";
  #problem: string | undefined = "the plugin's status is not known yet";
  #timer: Timer | undefined;
  #checking: Promise<void> | undefined;
  #isClosed = false;
  readonly #healthy = Promise.withResolvers<void>();

  constructor(name: string, service: KmsService, deps: KmsProviderDeps) {
    this.name = name;
    this.#service = service;
    this.#deps = deps;
  }

  /** Reads the status once, and from then on again and again. */
  async start(): Promise<void> {
    await this.check();
  }

  /** Why the provider is not well; undefined when it is. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Resolves when the plugin is well for the first time. */
  get firstHealthy(): Promise<void> {
    return this.#healthy.promise;
  }

  /** Reads the plugin's status now. Never rejects. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#service.close();
    this.#keys.clear();
  }

  async toStorage(key: string, value: Uint8Array): Promise<Uint8Array> {
    const present = this.#present;
    if (present === undefined)
      throw new Error(`KMS provider ${this.name}: ${this.#problem ?? "no key"}`);
    if (this.#deps.clock.monotonicMs() > present.expiresMs)
      throw new Error(
        `encryptedDEKSource with keyID hash ${JSON.stringify(hashOf(present.key.keyId))} expired: ${this.#problem}`,
      );
    const data = await present.cipher.toStorage(key, value);
    return encodeEncryptedObject({ ...present.key, data, source: KeySource.HkdfSeed });
  }

  async fromStorage(key: string, value: Uint8Array): Promise<Untransformed> {
    const object = decodeEncryptedObject(value);
    checkEncryptedObject(object);
    const cipher = await this.#cipherOf(object);
    const { value: clear, stale } = await cipher.fromStorage(key, object.data);
    const isOld = object.keyId !== this.#present?.key.keyId || object.source !== KeySource.HkdfSeed;
    return { value: clear, stale: stale || isOld };
  }

  #cipherOf(object: EncryptedObject): Promise<ValueTransformer> {
    const id = idOf(object, object.source);
    const known = this.#keys.get(id);
    if (known !== undefined) {
      this.#keys.delete(id);
      this.#keys.set(id, known);
      return known;
    }
    const decrypted = this.#decrypted(object);
    this.#keep(id, decrypted);
    // A failure is not kept: the next read asks the plugin again.
    decrypted.catch(() => {
      if (this.#keys.get(id) === decrypted) this.#keys.delete(id);
    });
    return decrypted;
  }

  async #decrypted({ source, ...object }: EncryptedObject): Promise<ValueTransformer> {
    let secret: Uint8Array;
    try {
      secret = await this.#service.decrypt(object);
    } catch (error) {
      throw new Error(`failed to decrypt DEK, error: ${(error as Error).message}`);
    }
    if (source === KeySource.HkdfSeed) return seedCipher(secret);
    if (![16, 24, 32].includes(secret.length))
      throw new Error(`crypto/aes: invalid key size ${secret.length}`);
    return ciphers.aesgcm(secret);
  }

  #keep(id: string, cipher: Promise<ValueTransformer>): void {
    this.#keys.set(id, cipher);
    keepNewest(this.#keys, MAX_KEYS);
  }

  async #check(): Promise<void> {
    const { clock, logger } = this.#deps;
    this.#timer?.cancel();
    let problem: string | undefined;
    try {
      await this.#refresh();
      this.#healthy.resolve();
    } catch (error) {
      problem = (error as Error).message;
    }
    if (this.#isClosed) return;
    if (problem !== this.#problem && problem !== undefined)
      logger.warn("a KMS plugin is not well", { provider: this.name, error: problem });
    if (problem === undefined && this.#problem !== undefined)
      logger.info("a KMS plugin is well", { provider: this.name });
    this.#problem = problem;
    const pauseMs = problem === undefined ? STATUS_PERIOD_MS : RETRY_PERIOD_MS;
    this.#timer = clock.after(pauseMs, () => void this.check());
  }

  /** Rejects with Error where the plugin is not well. */
  async #refresh(): Promise<void> {
    // Counted from before the call: it is an upper bound.
    const expiresMs = this.#deps.clock.monotonicMs() + SEED_LIFE_MS;
    const { version, healthz, keyId } = await this.#service.status();
    if (healthz !== "ok")
      throw new Error(`got unexpected healthz status: ${healthz.slice(0, MAX_SHOWN_CHARS)}`);
    if (version !== "v2" && version !== "v2beta1")
      throw new Error(`expected KMSv2 API version v2, got ${version.slice(0, MAX_SHOWN_CHARS)}`);
    this.#version ||= version;
    if (version !== this.#version)
      throw new Error(
        `KMSv2 API version should not change after the initial status response version ${this.#version}, got ${version}`,
      );
    checkKeyId(keyId);
    const present = this.#present;
    if (present?.key.keyId === keyId) {
      this.#present = { ...present, expiresMs };
      return;
    }
    await this.#rotate(keyId, expiresMs);
  }

  async #rotate(keyId: string, expiresMs: number): Promise<void> {
    const seed = randomBytes(SEED_BYTES);
    const key = await this.#service.encrypt(seed);
    checkEncryptedKey(key);
    if (key.keyId !== keyId)
      throw new Error(
        `failed to rotate DEK, statusKeyIDHash=${hashOf(keyId)}, encryptKeyIDHash=${hashOf(key.keyId)}`,
      );
    const cipher = seedCipher(seed);
    this.#present = { key, cipher, expiresMs };
    this.#keep(idOf(key, KeySource.HkdfSeed), Promise.resolve(cipher));
    this.#deps.logger.info("a new key encrypts values", { provider: this.name });
  }
}

/** Distinguishes encrypted keys. */
function idOf({ ciphertext, keyId, annotations }: EncryptedKey, source: number): string {
  const object = { data: new Uint8Array(0), ciphertext, keyId, annotations, source };
  return Buffer.from(encodeEncryptedObject(object)).toString("latin1");
}

export const MAX_KEY_ID_BYTES = 1024;
export const MAX_ENCRYPTED_KEY_BYTES = 1024;
export const MAX_ANNOTATION_BYTES: number = 32 * 1024;

/** Throws Error for a key id that is empty or too long. */
function checkKeyId(keyId: string): void {
  const size = Buffer.byteLength(keyId);
  if (size === 0) throw new Error("keyID is empty");
  if (size > MAX_KEY_ID_BYTES)
    throw new Error(`keyID is ${size} bytes, which exceeds the max size of ${MAX_KEY_ID_BYTES}`);
}

/** Throws Error for a key that a plugin may not return. */
function checkEncryptedKey({ ciphertext, keyId, annotations }: EncryptedKey): void {
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
function checkEncryptedObject(object: EncryptedObject): void {
  const { source, data } = object;
  if (source !== KeySource.AesGcmKey && source !== KeySource.HkdfSeed)
    throw new Error(`unknown encryptedDEKSourceType: ${source}`);
  if (data.length === 0) throw new Error("encrypted data is empty");
  checkEncryptedKey(object);
}

/** A key id for logs; it may be a secret of its operator. */
function hashOf(keyId: string): string {
  return keyId === "" ? "" : `sha256:${createHash("sha256").update(keyId).digest("hex")}`;
}

const SEED_BYTES = 32;
const INFO_BYTES = 32;

/** The AES-256 key for `info` (RFC 5869, section 2.3, with one block). */
function derivedKey(seed: Uint8Array, info: Uint8Array): Uint8Array {
  return createHmac("sha256", seed).update(info).update(Uint8Array.of(1)).digest();
}

/**
 * Encryption of values with a key of their own each, which a seed yields (apiserver:
 * pkg/storage/value/encrypt/aes/aes_extended_nonce.go):
 *
 *     info (32 random bytes)  nonce (12)  ciphertext  tag (16)
 *
 * The key is HKDF-SHA256's first block, expanded from the seed with `info`.
 *
 * Throws Error for a seed that is too short.
 */
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
