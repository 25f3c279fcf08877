/**
 * The peer URLs that a request sets for a member: checked before they go into the membership, where
 * every member keeps them for good.
 */
import { errorOf, Reader, WireError } from "@quorate/proto";
import { parseUrl } from "../config/url.ts";
import { ValueError } from "../config/values.ts";

/** URLs of one member. */
export const MAX_MEMBER_URLS = 64;
/** A host name has at most 253 characters, a path of a unix socket 107. */
export const MAX_MEMBER_URL_CHARS = 1024;

/**
 * Counts the URLs of an encoded request before it is decoded: a million empty ones fit into it.
 * @param field the number of the field that holds them
 * @throws EtcdError MemberBadURLs
 */
export function countUrls(bytes: Uint8Array, field: number): void {
  const reader = new Reader(bytes);
  let urls = 0;
  try {
    while (reader.pos < reader.end && urls <= MAX_MEMBER_URLS) {
      const tag = reader.tag();
      if (tag >>> 3 === field) urls++;
      reader.skip(tag, {});
    }
  } catch (error) {
    // The decoding of the request reports what is wrong, and where.
    if (!(error instanceof WireError)) throw error;
  }
  if (urls > MAX_MEMBER_URLS) throw errorOf("MemberBadURLs");
}

/** The URLs as they are kept, in the order given. @throws EtcdError MemberBadURLs */
export function checkedUrls(urls: readonly string[]): string[] {
  try {
    const fit =
      urls.length > 0 &&
      urls.length <= MAX_MEMBER_URLS &&
      urls.every((url) => url.length <= MAX_MEMBER_URL_CHARS);
    if (fit) return urls.map((url) => parseUrl(url).text);
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
  }
  throw errorOf("MemberBadURLs");
}
