/**
 * Ends of texts and lists in them, in one pass: a regular expression that searches for the end of a
 * text takes quadratic time.
 */

const SP = 32;
const HTAB = 9;

/** Without the spaces and tabs at both ends, as in header values (RFC 9110 section 5.5). */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/**
 * The elements of a header's comma-separated list (RFC 9110 section 5.6.1), trimmed, empty ones
 * included. Elements that may be quoted need another parser.
 */
export function listItems(value: string): string[] {
  return value.includes(",") ? value.split(",").map(trimBlanks) : [trimBlanks(value)];
}

/** Without the characters `char` at the end. */
export function trimEndOf(text: string, char: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === char) end--;
  return text.slice(0, end);
}

function isBlank(code: number): boolean {
  return code === SP || code === HTAB;
}
