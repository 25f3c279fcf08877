/** Reads the pages of an OpenID Connect provider over HTTPS. */
import { tlsContext } from "@quorate/host";
import {
  type FetchPage,
  MAX_OIDC_PAGE_BYTES,
  OIDC_FETCH_TIMEOUT_MS,
} from "../src/authn/oidc-tokens.ts";

/** @param caPem of the authority that the provider proves itself with; undefined: the platform's */
export function oidcPages(caPem: string | undefined): FetchPage {
  return async (url) => {
    const { Agent, request } = await import("undici");
    const agent = new Agent({ connect: tlsContext({ trusted: caPem }), connections: 1 });
    try {
      const { statusCode, body } = await request(url, {
        dispatcher: agent,
        signal: AbortSignal.timeout(OIDC_FETCH_TIMEOUT_MS),
      });
      if (statusCode !== 200) throw new Error(`${url}: status ${statusCode}`);
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of body) {
        size += (chunk as Buffer).length;
        if (size > MAX_OIDC_PAGE_BYTES) {
          throw new Error(`${url} has more than ${MAX_OIDC_PAGE_BYTES} bytes`);
        }
        chunks.push(chunk as Buffer);
      }
      return Buffer.concat(chunks).toString();
    } finally {
      await agent.destroy();
    }
  };
}
