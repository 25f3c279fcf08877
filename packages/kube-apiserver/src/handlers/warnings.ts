/** Warning headers of a response (apiserver: pkg/endpoints/filters/warning.go; RFC 9111 5.5). */

/** Characters of all warnings of a response; above it each is cut to MAX_ITEM_CHARS. */
export const MAX_TOTAL_CHARS = 4 * 1024;
const MAX_ITEM_CHARS = 256;

/** Warnings in their order, each once. */
export class Warnings {
  readonly #texts = new Set<string>();

  add(text: string): void {
    if (text !== "" && this.#texts.size < MAX_TOTAL_CHARS) this.#texts.add(text);
  }

  /** The value of the header; undefined without warnings. */
  get header(): string | undefined {
    if (this.#texts.size === 0) return undefined;
    const texts = [...this.#texts];
    const isLong = texts.reduce((sum, text) => sum + text.length, 0) > MAX_TOTAL_CHARS;
    const items: string[] = [];
    let written = 0;
    for (const text of texts) {
      const item = isLong ? text.slice(0, MAX_ITEM_CHARS) : text;
      if (written + item.length > MAX_TOTAL_CHARS) break;
      written += item.length;
      items.push(`299 - ${quoted(item)}`);
    }
    return items.join(", ");
  }
}

/** A quoted-string; control characters, which headers cannot hold, become spaces. */
function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it removes
  const printable = text.replace(/[\u0000-\u001f\u007f]/g, " ");
  return `"${printable.replace(/[\\"]/g, "\\$&")}"`;
}
