/** Texts that members supply, made safe to print. */

/** Characters of such a text that are printed at the most. */
const MAX_CHARS = 200;

/** A text without control characters (a terminal would obey them), cut where it is very long. */
export function printable(text: string): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
  return clean.length <= MAX_CHARS ? clean : `${clean.slice(0, MAX_CHARS - 3)}...`;
}

/**
 * A word for a shell's command line: quoted where it holds anything that a shell would read
 * otherwise.
 */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${printable(text).replaceAll("'", `'\\''`)}'`;
}
