/** Base64 as Go's encoding/base64 takes it: line ends are passed over. */
import { fromBase64 } from "@quorate/proto";

/** The bytes of a text; undefined if it is no base64 with padding. */
export function decodeBase64(text: string): Uint8Array | undefined {
  return fromBase64(text.replace(/[\r\n]/g, ""));
}

/** True for a text that is base64. */
export function isBase64(text: string): boolean {
  return decodeBase64(text) !== undefined;
}
