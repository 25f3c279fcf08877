/** Texts as Go prints them (fmt's %q, encoding/json), because clients compare error texts. */
import { escapeGoJson } from "@quorate/proto";

export { isPrintable, quoteText as goQuote } from "@quorate/proto";

/** JSON as encoding/json writes it: "<", ">" and "&" are escaped. Keys keep their order. */
export function goJson(value: unknown): string {
  return escapeGoJson(JSON.stringify(value) ?? "null");
}
