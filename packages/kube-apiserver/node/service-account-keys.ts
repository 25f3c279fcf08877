/**
 * Keys of service account tokens from PEM files (--service-account-key-file,
 * --service-account-signing-key-file), or a new pair for servers that have none.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
} from "node:crypto";
import { promisify } from "node:util";
import { CodedError } from "@quorate/proto";
import type { JWK } from "jose";
import {
  MAX_SERVICE_ACCOUNT_KEYS,
  type ServiceAccountAlgorithm,
  type ServiceAccountKeys,
  type ServiceAccountVerificationKey,
} from "../src/authn/service-account-keys.ts";

/** A key that cannot be used. Its message names the file, never the key. */
export class ServiceAccountKeyError extends CodedError<"ServiceAccountKey"> {
  constructor(message: string) {
    super("ServiceAccountKeyError", "ServiceAccountKey", message);
  }
}

/** A file's contents. */
export interface PemFile {
  readonly path: string;
  readonly pem: string;
}

/**
 * @param signing one private key, RSA or EC (P-256, P-384, P-521)
 * @param others public or private keys whose tokens are accepted too; several in a file
 * @throws ServiceAccountKeyError
 */
export function serviceAccountKeys(
  signing: PemFile,
  others: readonly PemFile[] = [],
): ServiceAccountKeys {
  const privateKey = privateKeyOf(signing);
  const own = createPublicKey(privateKey);
  const publicKeys = [
    own,
    ...others.flatMap((file) => blocksOf(file.pem).map((pem) => publicKeyOf({ ...file, pem }))),
  ];
  if (publicKeys.length > MAX_SERVICE_ACCOUNT_KEYS) {
    throw new ServiceAccountKeyError(`more than ${MAX_SERVICE_ACCOUNT_KEYS} service account keys`);
  }
  const byId = new Map(publicKeys.map(verificationKeyOf).map((key) => [key.keyId, key]));
  const { keyId, algorithm } = verificationKeyOf(own);
  return {
    signing: { keyId, algorithm, key: privateKey },
    verification: [...byId.values()],
  };
}

/** A new EC key in PEM (PKCS #8), for servers without a key file. EC keys are made in a moment. */
export async function newServiceAccountKeyPem(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function privateKeyOf({ path, pem }: PemFile): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    throw new ServiceAccountKeyError(`${path} has no private key in PEM`);
  }
}

function publicKeyOf({ path, pem }: PemFile): KeyObject {
  try {
    return createPublicKey(pem);
  } catch {
    throw new ServiceAccountKeyError(`${path} has no public or private key in PEM`);
  }
}

/** What begins with "-----BEGIN ", each up to the next one; the whole text where none does. */
function blocksOf(pem: string): readonly string[] {
  const [, ...blocks] = pem.split("-----BEGIN ");
  return blocks.length === 0 ? [pem] : blocks.map((block) => `-----BEGIN ${block}`);
}

function verificationKeyOf(key: KeyObject): ServiceAccountVerificationKey {
  const keyId = createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("base64url");
  const publicJwk = key.export({ format: "jwk" }) as JWK;
  return { keyId, algorithm: algorithmOf(key), key, publicJwk };
}

const CURVES: Readonly<Record<string, ServiceAccountAlgorithm>> = {
  prime256v1: "ES256",
  secp384r1: "ES384",
  secp521r1: "ES512",
};

function algorithmOf(key: KeyObject): ServiceAccountAlgorithm {
  if (key.asymmetricKeyType === "rsa") return "RS256";
  const algorithm = CURVES[key.asymmetricKeyDetails?.namedCurve ?? ""];
  if (key.asymmetricKeyType === "ec" && algorithm !== undefined) return algorithm;
  throw new ServiceAccountKeyError("a service account key must be RSA, or EC with P-256, 384, 521");
}
