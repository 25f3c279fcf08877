/**
 * The keys of users' tokens from files: PEM as etcd reads it (public keys, private keys and
 * certificates), several in one file while keys overlap, and JSON Web Key Sets.
 */

import { createPrivateKey, createPublicKey, type KeyObject, type webcrypto } from "node:crypto";
import { escapeControls, type Pauses, pemBlocks } from "@quorate/host";
import { type FileContents, FileSource, type FileSourceDependencies } from "@quorate/host/node";
import {
  algorithmsOf,
  expectsProvider,
  type JwtAlgorithm,
  type JwtKeys,
  type JwtSettings,
  JwtTokens,
  jwtAlgorithm,
  jwtProvider,
  type KeyFamily,
  keyFamily,
  MAX_VERIFICATION_KEYS,
  type TokenProvider,
  type VerificationKey,
} from "@quorate/member";
import type { MetricRegistry } from "@quorate/metrics";
import { defined } from "@quorate/proto";
import * as jose from "jose";

/** Reads the keys, and follows their files. Rejects with what is wrong with them. */
export function openJwtKeys(
  settings: JwtSettings,
  dependencies: FileSourceDependencies,
): Promise<FileSource<JwtKeys>> {
  const { publicKeyFile, privateKeyFile, jwksFile } = settings;
  const paths = [publicKeyFile, privateKeyFile, jwksFile].filter((path) => path !== "");
  return FileSource.open(
    {
      what: "keys of tokens",
      paths: [...new Set(paths)],
      parse: (contents, pauses) => readJwtKeys(settings, contents, pauses),
    },
    dependencies,
  );
}

/** The keys in files. Rejects with the path, and never shows a key. */
export async function readJwtKeys(
  settings: JwtSettings,
  contents: FileContents,
  pauses: Pauses,
): Promise<JwtKeys> {
  const { algorithm, publicKeyFile, privateKeyFile, jwksFile } = settings;
  const verification: VerificationKey[] = [];
  const algorithms: ReadonlySet<JwtAlgorithm> = new Set([algorithm]);
  let signing: JwtKeys["signing"];
  if (privateKeyFile !== "") {
    const bytes = defined(contents.get(privateKeyFile), "the private key");
    const key = signingKey(algorithm, bytes, privateKeyFile);
    signing = { algorithm, key };
    const check = "type" in key && key.type === "private" ? createPublicKey(key) : key;
    verification.push({ id: undefined, algorithms, key: check, isForeign: false });
  }
  // For a shared secret etcd has no use for a public key.
  if (publicKeyFile !== "" && keyFamily(algorithm) !== "secret") {
    const isForeign = privateKeyFile === "" && expectsProvider(settings);
    const bytes = defined(contents.get(publicKeyFile), "the public key");
    const keys = await publicKeys(bytes, publicKeyFile, keyFamily(algorithm), pauses);
    if (signing !== undefined && !keys.some((key) => isPair(key, signing.key as KeyObject)))
      throw new Error(`the key in ${privateKeyFile} belongs to none in ${publicKeyFile}`);
    for (const key of keys) verification.push({ id: undefined, algorithms, key, isForeign });
  }
  if (jwksFile !== "")
    verification.push(
      ...(await jwksKeys(defined(contents.get(jwksFile), "the key set"), jwksFile, pauses)),
    );
  if (verification.length > MAX_VERIFICATION_KEYS) {
    throw new Error(
      `${verification.length} keys are more than the ${MAX_VERIFICATION_KEYS} that are allowed`,
    );
  }
  return { verification, signing };
}

function signingKey(algorithm: JwtAlgorithm, bytes: Uint8Array, path: string) {
  if (keyFamily(algorithm) === "secret") {
    if (bytes.length === 0) throw new Error(`${path} is empty`);
    return bytes;
  }
  let key: KeyObject;
  try {
    key = createPrivateKey(Buffer.from(bytes));
  } catch {
    throw new Error(`${path} has no private key in PEM that can be read`);
  }
  checkFamily(key, keyFamily(algorithm), path);
  return key;
}

/** All keys of a PEM file, of whichever blocks are public keys or certificates. */
async function publicKeys(
  bytes: Uint8Array,
  path: string,
  family: KeyFamily,
  pauses: Pauses,
): Promise<KeyObject[]> {
  const blocks = pemBlocks(Buffer.from(bytes).toString("latin1")).filter(
    ({ label }) => !label.endsWith("PRIVATE KEY"),
  );
  const keys = await inSlices(blocks, path, pauses, ({ text }) => {
    try {
      return [createPublicKey(text)];
    } catch {
      throw new Error(`${path} has a PEM block that is no public key`);
    }
  });
  if (keys.length === 0) throw new Error(`${path} has no public key in PEM`);
  for (const key of keys) checkFamily(key, family, path);
  return keys;
}

function isPair(publicKey: KeyObject, privateKey: KeyObject): boolean {
  return createPublicKey(privateKey).equals(publicKey);
}

/** OpenSSL's names of curves. */
const curves: Readonly<Record<string, KeyFamily>> = {
  prime256v1: "P-256",
  secp384r1: "P-384",
  secp521r1: "P-521",
};

/** Shorter keys are refused by the library that checks signatures (RFC 7518, 3.3). */
const MIN_RSA_BITS = 2048;

function familyOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): KeyFamily | undefined {
  if (asymmetricKeyType === "rsa") return "rsa";
  if (asymmetricKeyType === "ed25519") return "Ed25519";
  return asymmetricKeyType === "ec" ? curves[asymmetricKeyDetails?.namedCurve ?? ""] : undefined;
}

function checkFamily(key: KeyObject, wanted: KeyFamily, path: string): void {
  const family = familyOf(key);
  if (family !== wanted)
    throw new Error(`${path} has a key of the kind ${family ?? "unknown"}, not ${wanted}`);
  const bits = key.asymmetricKeyDetails?.modulusLength;
  if (bits !== undefined && bits < MIN_RSA_BITS)
    throw new Error(`${path} has an RSA key of ${bits} bits; ${MIN_RSA_BITS} are the least`);
}

/** Keys in a file, those included that are for another use. */
export const MAX_LISTED_KEYS = 128;

/** The keys that `read` finds in the parts of a file. Rejects, with its path, for too many. */
async function inSlices<Part, Key>(
  parts: readonly Part[],
  path: string,
  pauses: Pauses,
  read: (part: Part) => Key[],
): Promise<Key[]> {
  if (parts.length > MAX_LISTED_KEYS)
    throw new Error(`${path} lists ${parts.length} keys; at most ${MAX_LISTED_KEYS} are read`);
  const keys: Key[] = [];
  for (const part of parts) {
    keys.push(...read(part));
    await pauses.next();
  }
  return keys;
}

type Jwk = webcrypto.JsonWebKey & { readonly kid?: unknown };

/** The keys of a set that are for signatures; keys of unknown kinds are left out (RFC 7517, 5). */
async function jwksKeys(
  bytes: Uint8Array,
  path: string,
  pauses: Pauses,
): Promise<VerificationKey[]> {
  let parsed: { keys?: unknown } | null;
  try {
    parsed = JSON.parse(Buffer.from(bytes).toString()) as { keys?: unknown } | null;
  } catch {
    throw new Error(`${path} is not JSON`);
  }
  if (!Array.isArray(parsed?.keys)) throw new Error(`${path} has no list of keys`);
  const keys = await inSlices(parsed.keys as Jwk[], path, pauses, (one) => jwkOf(one, path));
  if (keys.length === 0) throw new Error(`${path} has no key for signatures that can be used`);
  return keys;
}

/** A key's id for a message: it comes from another party. */
function shownKeyId(kid: unknown): string {
  return escapeControls(String(kid)).slice(0, 64);
}

function jwkOf(jwk: Jwk, path: string): VerificationKey[] {
  const { kty, kid, use, alg } = jwk;
  if (kty === "oct" || (use !== undefined && use !== "sig")) return [];
  let key: KeyObject;
  try {
    // Of a private key the public half is enough, and the rest is not kept.
    key = createPublicKey({ key: jwk, format: "jwk" });
  } catch {
    if (kty === "RSA" || kty === "EC" || kty === "OKP")
      throw new Error(`${path} has a key that cannot be read (kid ${shownKeyId(kid)})`);
    return [];
  }
  const family = familyOf(key);
  if (family === undefined) return [];
  checkFamily(key, family, path);
  const named = alg === undefined ? undefined : jwtAlgorithm(String(alg));
  const fit = algorithmsOf(family);
  if (alg !== undefined && (named === undefined || !fit.includes(named))) return [];
  const algorithms = new Set(named === undefined ? fit : [named]);
  const id = typeof kid === "string" ? kid : undefined;
  return [{ id, algorithms, key, isForeign: true }];
}

export interface SignedTokens {
  readonly provider: TokenProvider;
  readonly keys: FileSource<JwtKeys>;
  declareMetrics(registry: MetricRegistry): void;
}

/** Reads the keys, and follows their files. Rejects with what is wrong with them. */
export async function openSignedTokens(
  settings: JwtSettings,
  dependencies: FileSourceDependencies,
): Promise<SignedTokens> {
  const keys = await openJwtKeys(settings, dependencies).catch((error: Error) => {
    throw new Error(`--auth-token: ${error.message}`);
  });
  const tokens = new JwtTokens(settings, keys.current, { ...dependencies, jose });
  keys.onChange((changed) => tokens.useKeys(changed));
  return {
    provider: jwtProvider(tokens),
    keys,
    declareMetrics(registry) {
      const refused = registry.counter(
        "quorate_auth_jwt_refused_total",
        "Signed tokens that were refused: ended, or of no key or claim that is accepted.",
      );
      const checked = registry.counter(
        "quorate_auth_jwt_verifications_total",
        "Signatures of tokens that were checked; tokens that were checked before are remembered.",
      );
      registry.onScrape(() => {
        refused.value = tokens.refusals;
        checked.value = tokens.verifications;
      });
    },
  };
}
