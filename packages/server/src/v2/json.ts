/** JSON as Go's encoding/json writes it, which the v2 API's clients have always seen. */

const REPLACEMENT = "\\ufffd";
const SIMPLE = /^[ !#-%'-;=?-[\]-~]*$/;

/**
 * A string of bytes as JSON. Bytes that are not UTF-8 become U+FFFD, one each; <, >, &, U+2028 and
 * U+2029 are escaped (Go 1.19: encodeState.stringBytes with escapeHTML).
 * @param latin1 one char a byte
 */
export function goString(latin1: string): string {
  if (SIMPLE.test(latin1)) return `"${latin1}"`;
  let out = '"';
  for (let i = 0; i < latin1.length; ) {
    const byte = latin1.charCodeAt(i);
    if (byte < 0x80) {
      out += escaped(byte);
      i++;
      continue;
    }
    const length = sequenceLength(latin1, i);
    if (length === 0) {
      out += REPLACEMENT;
      i++;
      continue;
    }
    const char = decodeURIComponent(
      [...latin1.slice(i, i + length)].map((c) => `%${c.charCodeAt(0).toString(16)}`).join(""),
    );
    out += char === "\u2028" ? "\\u2028" : char === "\u2029" ? "\\u2029" : char;
    i += length;
  }
  return `${out}"`;
}

function escaped(byte: number): string {
  switch (byte) {
    case 0x22:
      return '\\"';
    case 0x5c:
      return "\\\\";
    case 0x0a:
      return "\\n";
    case 0x0d:
      return "\\r";
    case 0x09:
      return "\\t";
    case 0x3c:
    case 0x3e:
    case 0x26:
      return `\\u00${byte.toString(16)}`;
    default:
      return byte < 0x20 ? `\\u00${byte.toString(16).padStart(2, "0")}` : String.fromCharCode(byte);
  }
}

/** Length of the UTF-8 sequence at `at`; 0 if there is none (Unicode 15, table 3-7). */
function sequenceLength(s: string, at: number): number {
  const first = s.charCodeAt(at);
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > s.length) return 0;
  const second = s.charCodeAt(at + 1);
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (let i = at + 2; i < at + length; i++) {
    const byte = s.charCodeAt(i);
    if (byte < 0x80 || byte > 0xbf) return 0;
  }
  return length;
}

/** A time as Go's time.Time marshals it: RFC 3339, the fraction without trailing zeros, in UTC. */
export function goTime(wallMs: number): string {
  const text = new Date(wallMs).toISOString();
  return text.replace(/\.?0*Z$/, "Z");
}
