/**
 * Base64 of binary metadata (grpc/grpc, doc/PROTOCOL-HTTP2.md): with or without padding, and "-_"
 * accepted for "+/".
 */
import { alloc, writeFromBase64 } from "@quorate/proto";

/** The bytes of a base64 text, decoded up to the first character that is not base64. */
export function decodeBase64(text: string): Uint8Array {
  const end = text.search(/[^A-Za-z0-9+/_-]/);
  const digits = end < 0 ? text : text.slice(0, end);
  const bytes = alloc((digits.length * 3) >>> 2);
  return bytes.subarray(0, writeFromBase64(bytes, digits, 0));
}
