/** /.well-known/openid-configuration and /openid/v1/jwks, by which others verify our tokens. */
import { methodNotSupported } from "@quorate/kube-storage";
import { fromUtf8 } from "@quorate/proto";
import type { JWK } from "jose";
import type {
  ServiceAccountKeys,
  ServiceAccountVerificationKey,
} from "../authn/service-account-keys.ts";
import type { Page } from "./routes.ts";

/**
 * @param issuer the first one; there are no pages where it is no https address
 * @param url of this server, such as "https://127.0.0.1:6443"
 */
export function openIdPages(
  issuer: string,
  url: string,
  keys: ServiceAccountKeys,
): ReadonlyMap<string, Page> {
  const metadata = openIdMetadata(issuer, `${url}${JWKS_PATH}`, keys.verification);
  if (metadata === undefined) return new Map();
  const page =
    (contentType: string, body: Uint8Array): Page =>
    async (call) => {
      const { method, path } = call.head;
      if (method !== "GET" && method !== "HEAD") {
        throw methodNotSupported({ group: "", resource: path }, method.toLowerCase());
      }
      const cacheControl = `public, max-age=${OPENID_MAX_AGE_SECONDS}`;
      call.respond(200, { "content-type": contentType, "cache-control": cacheControl }, body);
    };
  return new Map([
    [OPENID_CONFIGURATION_PATH, page("application/json", metadata.configuration)],
    [JWKS_PATH, page("application/jwk-set+json", metadata.keySet)],
  ]);
}

const OPENID_CONFIGURATION_PATH = "/.well-known/openid-configuration";
const JWKS_PATH = "/openid/v1/jwks";
/** Both documents' Cache-Control: public, max-age. */
const OPENID_MAX_AGE_SECONDS = 3600;

/** The bodies of the two endpoints, and their media types. */
interface OpenIdMetadata {
  /** application/json */
  readonly configuration: Uint8Array;
  /** application/jwk-set+json */
  readonly keySet: Uint8Array;
}

/**
 * The documents by which others verify service account tokens (Kubernetes:
 * pkg/serviceaccount/openidmetadata.go; OpenID Connect Discovery 1.0).
 *
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
