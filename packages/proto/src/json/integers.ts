/**
 * Integers in all forms that protojson takes: 1e3 and 10.0 are integers, and a string may hold one
 * ("12"). The usual forms never get here.
 */
import { isDigit } from "./scanner.ts";

/** Digits of the largest uint64. */
const MAX_DIGITS = 20;
const INT32_MAX = 0x7fff_ffff;
/** [-+._a-zA-Z0-9]: what may not follow a number at once. */
const NOT_DELIMITER = /[-+._a-zA-Z0-9]/;
const NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]*))?/;
/** Go's unicode.IsSpace. */
const SPACE =
  "[\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const IS_SPACE = new RegExp(SPACE);

/** The integer that a number's text stands for; undefined if it is none of up to 20 digits. */
export function integerOfNumber(text: string): bigint | undefined {
  const found = NUMBER.exec(text);
  if (found === null) return undefined;
  // As protojson's lexer: an exponent may lack its digits where another character follows.
  if (found[4] === "" && found[0].length === text.length) return undefined;
  if (found[0].length < text.length && NOT_DELIMITER.test(text[found[0].length])) return undefined;
  const [, sign, whole, fraction = "", exponent = ""] = found;
  const digits = integerDigits(whole === "0" ? "" : whole, withoutZeros(fraction), exponent);
  if (digits === undefined) return undefined;
  // "-0" is zero for unsigned fields too.
  return sign === "-" ? -BigInt(digits) : BigInt(digits);
}

/** The integer in a string: a number at its start, up to a delimiter, as protojson reads it. */
export function integerOfString(text: string): bigint | undefined {
  // A search of the whole text for a space at its end would take long for a text of millions.
  const isSpaced = IS_SPACE.test(text.slice(0, 1)) || IS_SPACE.test(text.slice(-1));
  return isSpaced ? undefined : integerOfNumber(text);
}

/** Without the zeros at the end; a regular expression would take quadratic time. */
function withoutZeros(fraction: string): string {
  let end = fraction.length;
  while (end > 0 && fraction[end - 1] === "0") end--;
  return fraction.slice(0, end);
}

function integerDigits(whole: string, fraction: string, exponent: string): string | undefined {
  if (whole === "" && fraction === "") return "0";
  if (exponent !== "" && !/[0-9]$/.test(exponent)) return undefined;
  const shift = Number(exponent);
  if (shift > INT32_MAX || shift < -INT32_MAX - 1) return undefined;
  if (shift < 0) {
    const kept = whole.length + shift;
    if (fraction !== "" || kept < 0 || kept > MAX_DIGITS || /[1-9]/.test(whole.slice(kept)))
      return undefined;
    return whole.slice(0, kept);
  }
  if (fraction.length > shift || whole.length + shift > MAX_DIGITS) return undefined;
  return whole + fraction.padEnd(shift, "0");
}

/** The offset behind the JSON number at `start`, or -1 if there is none (RFC 8259 section 6). */
export function numberEnd(json: Uint8Array, start: number): number {
  let at = json[start] === 0x2d ? start + 1 : start;
  if (!isDigit(json[at])) return -1;
  if (json[at] === 0x30) at++;
  else while (isDigit(json[at])) at++;
  if (json[at] === 0x2e) {
    if (!isDigit(json[++at])) return -1;
    while (isDigit(json[at])) at++;
  }
  if (json[at] === 0x65 || json[at] === 0x45) {
    at++;
    if (json[at] === 0x2b || json[at] === 0x2d) at++;
    if (!isDigit(json[at])) return -1;
    while (isDigit(json[at])) at++;
  }
  return at;
}
