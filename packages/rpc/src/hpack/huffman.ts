/**
 * Huffman-coded strings (RFC 7541 section 5.2). The decoder is a state machine that consumes four
 * bits at a time.
 */
import { HpackError } from "./errors.ts";

/**
 * The Huffman code of RFC 7541 appendix B. The code is canonical: the codes of one length ascend in
 * the order of the symbols, and each length continues after the one before. The lengths alone
 * therefore define it.
 */

/** The symbol that ends a string's padding and must never be decoded. */
export const EOS = 256;

/** Bits of each symbol's code; the last one is EOS. */
// biome-ignore format: a table of sixteen columns
export const CODE_BITS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];

/** Each symbol's code, in the low bits. */
export const CODES: Uint32Array = canonicalCodes(CODE_BITS);

function canonicalCodes(lengths: readonly number[]): Uint32Array {
  const codes = new Uint32Array(lengths.length);
  let next = 0;
  for (let bits = 1; bits <= 30; bits++) {
    next *= 2;
    for (let symbol = 0; symbol < lengths.length; symbol++)
      if (lengths[symbol] === bits) codes[symbol] = next++;
  }
  // A complete code uses all of its longest words.
  if (next !== 2 ** 30) throw new Error(`the Huffman code is not complete: ${next}`);
  return codes;
}

/**
 * The decoder's table: entry [state * 16 + nibble]. A state is an inner node of the code's tree, 0
 * its root. The shortest code has five bits, so a nibble ends at most one symbol.
 *
 *   bits 0-7 symbol | bit 8: a symbol ends | bit 9: no such code (EOS) | from bit 10: next state
 */
const ENDS = 1 << 8;
const FAILS = 1 << 9;
const NEXT_SHIFT = 10;

interface Decoder {
  readonly table: Int32Array;
  /** By state: whether a string may end there. */
  readonly padding: Uint8Array;
}

/** Made for the first string: that takes milliseconds, and short commands may meet none. */
let decoder: Decoder | undefined;

function buildDecoder(): Decoder {
  // children[node * 2 + bit] is an inner node (positive) or a symbol (-1 - symbol).
  const children: number[] = [0, 0];
  for (let symbol = 0; symbol <= EOS; symbol++) {
    let node = 0;
    for (let bit = CODE_BITS[symbol] - 1; bit >= 0; bit--) {
      const slot = node * 2 + ((CODES[symbol] >>> bit) & 1);
      if (bit === 0) children[slot] = -1 - symbol;
      else {
        if (children[slot] === 0) {
          children[slot] = children.length / 2;
          children.push(0, 0);
        }
        node = children[slot];
      }
    }
  }
  const table = new Int32Array(children.length * 8);
  for (let state = 0; state < children.length / 2; state++) {
    for (let nibble = 0; nibble < 16; nibble++) {
      let node = state;
      let entry = 0;
      for (let bit = 3; bit >= 0; bit--) {
        const child = children[node * 2 + ((nibble >>> bit) & 1)];
        if (child >= 0) node = child;
        else {
          entry |= child === -1 - EOS ? FAILS : ENDS | (-1 - child);
          node = 0;
        }
      }
      table[state * 16 + nibble] = entry | (node << NEXT_SHIFT);
    }
  }
  // A string may end at the root or within the first seven ones of EOS.
  const padding = new Uint8Array(children.length / 2);
  for (let ones = 0, node = 0; ones <= 7; ones++, node = children[node * 2 + 1]) padding[node] = 1;
  return { table, padding };
}

/** The most bytes that `encodedBytes` of Huffman code can decode to. */
export function maxDecodedBytes(encodedBytes: number): number {
  return Math.floor((encodedBytes * 8) / 5);
}

/**
 * Decodes bytes[start, end) into the beginning of `out`, which must have maxDecodedBytes, and
 * returns the number of bytes written. Throws HpackError for a string that contains EOS or ends in
 * anything but up to seven one bits of padding.
 */
export function huffmanDecode(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
): number {
  decoder ??= buildDecoder();
  const { table, padding } = decoder;
  let state = 0;
  let size = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    const high = table[(state << 4) | (byte >>> 4)];
    if ((high & ENDS) !== 0) out[size++] = high & 0xff;
    const low = table[((high >>> NEXT_SHIFT) << 4) | (byte & 15)];
    if ((low & ENDS) !== 0) out[size++] = low & 0xff;
    if (((high | low) & FAILS) !== 0) throw new HpackError("a Huffman-coded string holds EOS");
    state = low >>> NEXT_SHIFT;
  }
  if (padding[state] === 0) throw new HpackError("a Huffman-coded string ends in bad padding");
  return size;
}

/** Bytes of a latin1 string's Huffman code. */
export function huffmanLength(text: string): number {
  let bits = 0;
  for (let i = 0; i < text.length; i++) bits += CODE_BITS[text.charCodeAt(i) & 0xff];
  return (bits + 7) >>> 3;
}

/**
 * Writes a latin1 string's Huffman code at `at`, where `out` must have the capacity for it, and
 * returns the offset behind it.
 */
export function huffmanEncode(text: string, out: Uint8Array, at: number): number {
  let byte = 0;
  let free = 8;
  for (let i = 0; i < text.length; i++) {
    const symbol = text.charCodeAt(i) & 0xff;
    const code = CODES[symbol];
    let left = CODE_BITS[symbol];
    while (left > 0) {
      const taken = Math.min(left, free);
      byte = (byte << taken) | ((code >>> (left - taken)) & ((1 << taken) - 1));
      left -= taken;
      free -= taken;
      if (free === 0) {
        out[at++] = byte;
        byte = 0;
        free = 8;
      }
    }
  }
  if (free < 8) out[at++] = (byte << free) | ((1 << free) - 1);
  return at;
}
