/** Makes texts from members safe to print. */

/** Longest printed text, in characters. */
const MAX_CHARS = 200;

/** The text without control characters, which a terminal would obey, and cut if too long. */
export function printable(text: string): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
  return clean.length <= MAX_CHARS ? clean : `${clean.slice(0, MAX_CHARS - 3)}...`;
}

/**
 * A word of a shell command line, quoted if needed.
 */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${printable(text).replaceAll("'", `'\\''`)}'`;
}
