/**
 * Header fields in the plainest form that HPACK has (RFC 7541 section 6.2.2): each a literal that
 * enters no table, its name spelt out, and neither part Huffman coded. Members write the head of a
 * stream of messages so; what is written otherwise is no member's.
 */
import { concat, fromLatin1, toLatin1 } from "../wire/bytes.ts";

/** A length that fits the seven bits of its first byte is below this. */
const PREFIX_MAX = 0x7f;
/** Bytes of a length after its first one: more than any field here needs. */
const MAX_LENGTH_BYTES = 3;

/** Fields as an HPACK block. Names are in lower case; characters up to U+00FF. */
export function encodePlainFields(
  fields: Iterable<readonly [name: string, value: string]>,
): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [name, value] of fields)
    parts.push(Uint8Array.of(0), encodeText(name), encodeText(value));
  return concat(parts);
}

function encodeText(text: string): Uint8Array {
  const bytes = fromLatin1(text);
  const length = [Math.min(bytes.length, PREFIX_MAX)];
  if (bytes.length >= PREFIX_MAX) {
    let rest = bytes.length - PREFIX_MAX;
    for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
    length.push(rest);
  }
  return concat([Uint8Array.from(length), bytes]);
}

/**
 * The fields of an HPACK block, or undefined if it is damaged or not in the plain form. Of a name
 * that comes twice, the last.
 */
export function decodePlainFields(block: Uint8Array): Record<string, string> | undefined {
  const fields: Record<string, string> = {};
  let at = 0;
  const text = (): string | undefined => {
    let length = block[at++];
    if (length === undefined || length > PREFIX_MAX) return undefined;
    if (length === PREFIX_MAX) {
      for (let i = 0, more = true; more; i++) {
        const byte = block[at++];
        if (byte === undefined || i === MAX_LENGTH_BYTES) return undefined;
        length += (byte & 0x7f) << (7 * i);
        more = byte > 0x7f;
      }
    }
    at += length;
    return at > block.length ? undefined : toLatin1(block, at - length, at);
  };
  while (at < block.length) {
    if (block[at++] !== 0) return undefined;
    const name = text();
    const value = name === undefined ? undefined : text();
    if (name === undefined || value === undefined) return undefined;
    fields[name] = value;
  }
  return fields;
}
