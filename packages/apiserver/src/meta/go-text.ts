/** Texts as Go prints them (fmt's %q, encoding/json), because clients compare error texts. */

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

const PRINTABLE = /[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/** Whether Go's unicode.IsPrint holds of one character. */
export function isPrintable(character: string): boolean {
  return PRINTABLE.test(character);
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** `text` in double quotes, escaped as by %q. */
export function goQuote(text: string): string {
  let quoted = '"';
  for (const character of text) {
    quoted += SHORT[character] ?? (isPrintable(character) ? character : escaped(character));
  }
  return `${quoted}"`;
}

/** JSON as encoding/json writes it: "<", ">" and "&" are escaped. Keys keep their order. */
export function goJson(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  return text.replace(/[<>&\u2028\u2029]/g, (character) => escaped(character));
}
