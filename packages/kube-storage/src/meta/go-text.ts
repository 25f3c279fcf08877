import { escapeGoJson } from "@quorate/proto";

/** JSON as encoding/json writes it: "<", ">" and "&" are escaped. Keys keep their order. */
export function goJson(value: unknown): string {
  return escapeGoJson(JSON.stringify(value) ?? "null");
}
