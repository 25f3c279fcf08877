/**
 * Base64 of binary metadata (grpc/grpc, doc/PROTOCOL-HTTP2.md): with or without padding, and "-_"
 * accepted for "+/".
 */
const VALUES = new Int8Array(256).fill(-1);
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
for (let i = 0; i < 64; i++) VALUES[ALPHABET.charCodeAt(i)] = i;
VALUES["-".charCodeAt(0)] = 62;
VALUES["_".charCodeAt(0)] = 63;

/** The bytes of a base64 text, decoded up to the first character that is not base64. */
export function decodeBase64(text: string): Uint8Array {
  const bytes = new Uint8Array(Math.ceil((text.length * 3) / 4));
  let size = 0;
  let bits = 0;
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const value = VALUES[text.charCodeAt(i) & 0xff];
    if (value < 0) break;
    bits = ((bits << 6) | value) & 0xffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes[size++] = bits >>> count;
  }
  return bytes.subarray(0, size);
}
