/**
 * Characters that a terminal acts on or displays in another order: C0 and C1 control characters,
 * line and paragraph separators, and Unicode's direction marks. Keys, names, paths and user agents
 * come from clients, which may send any bytes.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/**
 * The text with such characters as \xNN or \uNNNN; safe to print on a terminal within a line.
 */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
