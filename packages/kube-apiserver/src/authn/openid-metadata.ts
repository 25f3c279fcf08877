/**
 * The documents by which others verify service account tokens (Kubernetes:
 * pkg/serviceaccount/openidmetadata.go; OpenID Connect Discovery 1.0).
 */
import { fromUtf8 } from "@quorate/proto";
import type { JWK } from "jose";
import type { ServiceAccountVerificationKey } from "./service-account-keys.ts";

export const OPENID_CONFIGURATION_PATH = "/.well-known/openid-configuration";
export const JWKS_PATH = "/openid/v1/jwks";
/** Both documents' Cache-Control: public, max-age. */
export const OPENID_MAX_AGE_SECONDS = 3600;

/** The bodies of the two endpoints, and their media types. */
export interface OpenIdMetadata {
  /** application/json */
  readonly configuration: Uint8Array;
  /** application/jwk-set+json */
  readonly keySet: Uint8Array;
}

/**
 * @param issuer as in the tokens; https, without query and fragment, else there are no documents
 * @param jwksUri where clients read the key set
 */
export function openIdMetadata(
  issuer: string,
  jwksUri: string,
  keys: readonly ServiceAccountVerificationKey[],
): OpenIdMetadata | undefined {
  if (!/^https:\/\/[^?#]+$/.test(issuer) || !jwksUri.startsWith("https://")) return undefined;
  const algorithms = [...new Set(keys.map(({ algorithm }) => algorithm))].sort();
  const configuration = {
    issuer,
    jwks_uri: jwksUri,
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: algorithms,
  };
  return {
    configuration: fromUtf8(JSON.stringify(configuration)),
    keySet: fromUtf8(JSON.stringify({ keys: keys.map(publicKeyOf) })),
  };
}

/** Only the public members, whatever the key has. */
function publicKeyOf({ keyId, algorithm, publicJwk }: ServiceAccountVerificationKey): JWK {
  const { kty, n, e, crv, x, y } = publicJwk;
  const key = kty === "RSA" ? { n, e } : { crv, x, y };
  return { use: "sig", kty, kid: keyId, alg: algorithm, ...key } as JWK;
}
