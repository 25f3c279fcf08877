/** How Go's strconv.Quote writes text, for error messages that quote the input. */
import { toUtf8 } from "../wire/bytes.ts";
import { sequenceLength } from "./utf8.ts";

const SHORT: { readonly [code: number]: string } = {
  7: "\\a",
  8: "\\b",
  9: "\\t",
  10: "\\n",
  11: "\\v",
  12: "\\f",
  13: "\\r",
  92: "\\\\",
};
/** What encoding/json escapes and JSON.stringify does not. */
const UNSAFE: readonly (readonly [char: string, escaped: string])[] = [
  ["<", "\\u003c"],
  [">", "\\u003e"],
  ["&", "\\u0026"],
  ["\u2028", "\\u2028"],
  ["\u2029", "\\u2029"],
];
/** Go's unicode.IsPrint: letters, marks, numbers, punctuation, symbols and the ASCII space. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** A byte between single quotes, as encoding/json's syntax errors have it. */
export function quoteByte(byte: number): string {
  if (byte === 0x27) return "'\\''";
  if (byte === 0x22) return "'\"'";
  // Go converts the byte to the code point of that number.
  return `'${escapeChar(String.fromCharCode(byte))}'`;
}

/** Bytes in double quotes, as %q prints them. */
export function quoteBytes(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceLength(bytes, at, bytes.length);
    if (length === 0) text += `\\x${hex(bytes[at++], 2)}`;
    else {
      const char = toUtf8(bytes, at, at + length);
      text += char === '"' ? '\\"' : escapeChar(char);
      at += length;
    }
  }
  return `"${text}"`;
}

/** A text in double quotes, as %q prints it. */
export function quoteText(text: string): string {
  let quoted = "";
  for (const char of text) quoted += char === '"' ? '\\"' : escapeChar(char);
  return `"${quoted}"`;
}

/** JSON text with the characters escaped that encoding/json escapes and JSON.stringify does not. */
export function escapeGoJson(json: string): string {
  let text = json;
  for (const [char, escaped] of UNSAFE) text = text.replaceAll(char, escaped);
  return text;
}

/** Whether Go's unicode.IsPrint holds of one character. */
export function isPrintable(char: string): boolean {
  return PRINTABLE.test(char);
}

function escapeChar(char: string): string {
  const code = char.codePointAt(0)!;
  const short = SHORT[code];
  if (short !== undefined) return short;
  if (isPrintable(char)) return char;
  if (code < 0x20 || code === 0x7f) return `\\x${hex(code, 2)}`;
  return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
