/** Reads the pages of an OpenID Connect provider over HTTPS. */
import { tlsContext } from "@quorate/host";
import {
  type FetchPage,
  MAX_OIDC_PAGE_BYTES,
  OIDC_FETCH_TIMEOUT_MS,
} from "../src/authn/oidc-tokens.ts";
import { boundedBody } from "./bounded-body.ts";

/** @param caPem of the authority that the provider proves itself with; undefined: the platform's */
export function oidcPages(caPem: string | undefined): FetchPage {
  return async (url) => {
    const { Agent, request } = await import("undici");
    const agent = new Agent({ connect: tlsContext({ trusted: caPem }), connections: 1 });
    try {
      const response = await request(url, {
        dispatcher: agent,
        signal: AbortSignal.timeout(OIDC_FETCH_TIMEOUT_MS),
      });
      if (response.statusCode !== 200) throw new Error(`${url}: status ${response.statusCode}`);
      const tooLong = (bound: string) => new Error(`${url} has more than ${bound}`);
      return (await boundedBody(response, MAX_OIDC_PAGE_BYTES, tooLong)).toString();
    } finally {
      await agent.destroy();
    }
  };
}
