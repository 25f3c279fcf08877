/**
 * The keys of service account tokens. Each key is bound to one algorithm, so the header of a token
 * never decides how a key is used (RFC 8725 section 3.1). node/service-account-keys.ts reads them.
 */
import type { JWK, KeyInput } from "jose";

export const SERVICE_ACCOUNT_ALGORITHMS = ["RS256", "ES256", "ES384", "ES512"] as const;
export type ServiceAccountAlgorithm = (typeof SERVICE_ACCOUNT_ALGORITHMS)[number];

/** More public keys are refused when the server starts. */
export const MAX_SERVICE_ACCOUNT_KEYS = 64;

export interface ServiceAccountVerificationKey {
  /** SHA-256 of the public key (DER), base64url, as Kubernetes computes it. */
  readonly keyId: string;
  readonly algorithm: ServiceAccountAlgorithm;
  readonly key: KeyInput;
  /** The public key for /openid/v1/jwks: kty with n, e or crv, x, y. */
  readonly publicJwk: JWK;
}

export interface ServiceAccountSigningKey {
  readonly keyId: string;
  readonly algorithm: ServiceAccountAlgorithm;
  readonly key: KeyInput;
}

export interface ServiceAccountKeys {
  readonly signing: ServiceAccountSigningKey;
  /** The signing key's public part first; then others, whose tokens are still accepted. */
  readonly verification: readonly ServiceAccountVerificationKey[];
}
