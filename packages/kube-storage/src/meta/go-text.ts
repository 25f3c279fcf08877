/** Texts as Go prints them (fmt's %q, encoding/json), because clients compare error texts. */
export { isPrintable, quoteText as goQuote } from "@quorate/proto";

/** JSON as encoding/json writes it: "<", ">" and "&" are escaped. Keys keep their order. */
export function goJson(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  return text.replace(/[<>&\u2028\u2029]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
