/** Base64 for URLs without padding (RFC 4648, section 5). */
import { toUtf8, writeFromBase64 } from "@quorate/proto";

/** The text; undefined for a malformed encoding or bytes that are no UTF-8. */
export function fromBase64Url(encoded: string): string | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(encoded) || encoded.length % 4 === 1) return undefined;
  const plain = encoded.replaceAll("-", "+").replaceAll("_", "/");
  const padded = plain.padEnd(Math.ceil(plain.length / 4) * 4, "=");
  const space = new Uint8Array(padded.length);
  const text = toUtf8(space.subarray(0, writeFromBase64(space, padded, 0)));
  return text.includes("\ufffd") ? undefined : text;
}
