/** Standard base64 with padding (RFC 4648 section 4), as Go's encoding/base64 takes it. */

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUES: ReadonlyMap<string, number> = new Map([...ALPHABET].map((char, i) => [char, i]));

/** The bytes of a text; undefined if it is no such text. Line ends are passed over, as in Go. */
export function decodeBase64(text: string): Uint8Array | undefined {
  const chars = text.replace(/[\r\n]/g, "");
  if (chars.length % 4 !== 0) return undefined;
  const padding = chars.endsWith("==") ? 2 : chars.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((chars.length / 4) * 3 - padding);
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let i = 0; i < chars.length - padding; i++) {
    const value = VALUES.get(chars[i]);
    if (value === undefined) return undefined;
    held = (held << 6) | value;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[at++] = (held >> bits) & 0xff;
  }
  return bytes;
}

/** True for a text that is base64. */
export function isBase64(text: string): boolean {
  return decodeBase64(text) !== undefined;
}
