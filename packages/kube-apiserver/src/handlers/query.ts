/** The query of a request (Go: net/url). */

/** Parameters of a query beyond this many are ignored. */
export const MAX_QUERY_PARAMETERS = 1000;

/** Decodes "%41" and, in queries, "+"; undefined for a broken escape. */
export function unescapeUrl(text: string, inQuery: boolean): string | undefined {
  if (!text.includes("%") && !(inQuery && text.includes("+"))) return text;
  try {
    return decodeURIComponent(inQuery ? text.replaceAll("+", " ") : text);
  } catch {
    return undefined;
  }
}

/** The parameters by name; names and values that cannot be decoded are left out, as in Go. */
export class Query {
  readonly #values = new Map<string, string[]>();

  /** @param text the query without "?" */
  constructor(text: string) {
    if (text === "") return;
    for (const part of text.split("&", MAX_QUERY_PARAMETERS)) {
      if (part === "" || part.includes(";")) continue;
      const mark = part.indexOf("=");
      const name = unescapeUrl(mark === -1 ? part : part.slice(0, mark), true);
      const value = mark === -1 ? "" : unescapeUrl(part.slice(mark + 1), true);
      if (name === undefined || value === undefined) continue;
      const known = this.#values.get(name);
      if (known === undefined) this.#values.set(name, [value]);
      else known.push(value);
    }
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The first value; "" without one. */
  first(name: string): string {
    return this.#values.get(name)?.[0] ?? "";
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /**
   * A flag as Kubernetes reads it: absent is undefined; "false" and "0" are false, all other values
   * are true (apimachinery: runtime/converter.go).
   */
  flag(name: string): boolean | undefined {
    const value = this.#values.get(name)?.[0];
    if (value === undefined) return undefined;
    return value.toLowerCase() !== "false" && value !== "0";
  }
}
