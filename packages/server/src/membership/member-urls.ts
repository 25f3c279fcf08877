/** The peer URLs that somebody gives a member: checked before they go into the membership, where every member keeps them for good. */
import { errorOf } from "@quorate/proto";
import { parseUrl, ValueError } from "../config/index.ts";

/** URLs of one member. */
export const MAX_MEMBER_URLS = 64;
/** A host name has at most 253 characters, a path of a unix socket 107. */
export const MAX_MEMBER_URL_CHARS = 1024;

/** The URLs as they are kept, in the order given. @throws EtcdError MemberBadURLs */
export function checkedUrls(urls: readonly string[]): string[] {
  try {
    const fit = urls.length > 0 && urls.length <= MAX_MEMBER_URLS && urls.every((url) => url.length <= MAX_MEMBER_URL_CHARS);
    if (fit) return urls.map((url) => parseUrl(url).text);
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
  }
  throw errorOf("MemberBadURLs");
}
