/**
 * Texts that a parser with work beyond their length takes long for: a unit (a character class, or
 * a few characters of a grammar) many times, between a head and a tail that do not fit it. Texts
 * are latin1 strings: a char a byte.
 */

/** What is repeated. Characters above 127 are the bytes of UTF-8. */
export const UNITS: readonly string[] = [
  ..."019aAzfT_-+. \t/,'\":;=&%?#@!|<>~^$*\\()[]{}\0\x7f\n\r\xff",
  ...["\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xc2\xa0", "\xef\xbb\xbf", "\xed\xa0\x80"],
  ...["%20", "%2F", "%2f", "%25", "%00", "%C3%A9", "%c", "\\u0041", "\\ud83d", '\\"', "\\\\"],
  ...["1_", "a1", "aA", "a.", "1.", "1,", "a,", "a/", "a;", "a ", "a-", "a:", "a=", "a\t", "0x1"],
  ...[", ", " ,", "; ", "//", "..", "../", "./", "/a", "::", "1:", "ff:", "1.1.1.1,", "/1,", "--"],
  ...["a=1,", "a=1&", "&a=1", "a!=b,", "!a,", "a in (b),", "in ", "==", "~0", "~1", "/~1a", "/0"],
  ...["1h", "1m1s", "-1h", "P1D", "T1S", "1e1", "1Ki", "E9", "2026-", "00:", "0Z", "* ", "*/1 "],
  ...['"a",', '"a":1,', '{"a":', "[[", "[{", "{}", "[],", "[1],", '"",', "null,", "true ", "\r\n"],
  ...["- ", "- a\n", "a: b\n", "a:\n ", "? ", "&a ", "*a ", "<<: ", "!!a ", "|\n", "---\n", "#a\n"],
  ...[
    "(a",
    "a||",
    "a&&",
    "1+",
    "!(",
    "a?b:",
    "a.b",
    "a[0]",
    "a(",
    "[a,",
    "has(a)",
    "'a'+",
    "//a\n",
  ],
  ...["a*", "a+", "(a*)*", "[a-z]", "a|", "a{1}", "(?:", "\\d", ".*", "QUJD", "====", "-_", "eyJ."],
  ...[
    "Bearer ",
    "gzip, ",
    "a;q=0.1,",
    '"a',
    'W/"a",',
    "a=b; ",
    "\r\n ",
    "\r\na: b",
    "0\r\n",
    "1;a=b",
  ],
  ...["\x08\x01", "\x0a\x00", "\x0a\x02\x0a\x00", "\x12\x00", "\x0b", "\x0c", "\x1a\x00", "\x80"],
];

export const HEADS: readonly string[] = [
  ...["", "a", "a,", '"', "'", "{", "[", "(", "1", "-", "/", "a=", "Bearer ", "Basic ", "0x", "."],
  ...["{a: ", "a: ", "- ", "a b", "^", "!", "P", "<", "%", "1.", "base64url.", "token=", "\\", "~"],
];

export const TAILS: readonly string[] = [
  ...[
    "",
    "b",
    "!",
    '"',
    ",b",
    ":",
    " ",
    "1",
    "_",
    "/",
    "=",
    "}",
    "]",
    ")",
    ".",
    "x1",
    ";",
    "\\",
    "@",
  ],
  ...["\xc3\xa9", "%", "%zz", "\t", "-"],
];

/** Repeats a unit until the text has as many bytes. */
export function repeated(unit: string, bytes: number): string {
  return unit.repeat(Math.ceil(bytes / unit.length)).slice(0, bytes);
}

/** Where the text stands in what a field has otherwise. */
export const PLACES = ["alone", "start", "middle", "end"] as const;
export type Place = (typeof PLACES)[number];

/** The text at a place of the field's usual value. */
export function placed(usual: string, text: string, place: Place): string {
  const half = usual.length >> 1;
  if (place === "alone") return text;
  if (place === "start") return text + usual;
  if (place === "end") return usual + text;
  return usual.slice(0, half) + text + usual.slice(half);
}

/** A text without control characters, so that a report can show it. */
export function shown(text: string): string {
  return JSON.stringify(text).replace(
    /[\x7f-\xff]/g,
    (char) => `\\x${char.charCodeAt(0).toString(16)}`,
  );
}
