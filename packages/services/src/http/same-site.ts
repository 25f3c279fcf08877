/**
 * Keeps browsers' requests from doing anything on a port for programs. A page of any site can make
 * a browser on an operator's machine post to a plain port that only that machine reaches; the page
 * cannot read the answer, but the request would have acted. Members and tools never send what marks
 * such a request:
 *
 *     Origin            browsers send it with every request across sites that is not a GET or HEAD
 *                       (fetch.spec.whatwg.org, "origin header")
 *     Sec-Fetch-Site    browsers send it with every request; pages cannot remove it
 *     Content-Type      the three types that a form can send, for browsers that know neither
 */

import type { HttpHandler, HttpRequest } from "@quorate/host";
import { plainError } from "@quorate/host";

/** What can be sent across sites without the server's leave. */
const FORM_TYPES: ReadonlySet<string> = new Set([
  "application/x-www-form-urlencoded",
  "multipart/form-data",
  "text/plain",
]);
/** They change nothing. */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** Why a request may be a browser's on behalf of another site; undefined if it is not. */
function crossSite({ method, headers }: HttpRequest): string | undefined {
  if (SAFE_METHODS.has(method)) return undefined;
  if (headers.has("origin")) return "it has the header Origin";
  if (headers.has("sec-fetch-site")) return "it has the header Sec-Fetch-Site";
  const [type = ""] = (headers.get("content-type") ?? "")
    .split(";", 1)
    .map((text) => text.trim().toLowerCase());
  return FORM_TYPES.has(type) ? `its Content-Type is ${type}` : undefined;
}

/**
 * Answers what changes something with 403 where a browser may have sent it for a page of another
 * site.
 */
export function refuseCrossSite(handler: HttpHandler): HttpHandler {
  return (request) => {
    const why = crossSite(request);
    return why === undefined
      ? handler(request)
      : plainError(403, `this port does not answer browsers' requests across sites: ${why}`);
  };
}
