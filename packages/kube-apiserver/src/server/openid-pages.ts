/** /.well-known/openid-configuration and /openid/v1/jwks, by which others verify our tokens. */

import { methodNotSupported } from "@quorate/kube-storage";
import {
  JWKS_PATH,
  OPENID_CONFIGURATION_PATH,
  OPENID_MAX_AGE_SECONDS,
  openIdMetadata,
} from "../authn/openid-metadata.ts";
import type { ServiceAccountKeys } from "../authn/service-account-keys.ts";
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
