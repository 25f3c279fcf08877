/** The manager's name of a request without the option fieldManager. */
import { isPrintable } from "@quorate/proto";

/** Bytes of a manager's name (apimachinery: meta/v1/validation). */
export const MAX_MANAGER_BYTES = 128;

/**
 * @param fieldManager the option; "" if it is absent
 * @param userAgent the header; "" if it is absent. Its part before the first slash counts.
 * @returns at most MAX_MANAGER_BYTES bytes; "" stands for "unknown"
 */
export function managerOf(fieldManager: string, userAgent: string): string {
  if (fieldManager !== "") return fieldManager;
  let name = "";
  let bytes = 0;
  for (const char of userAgent.split("/", 1)[0]) {
    if (!isPrintable(char)) continue;
    const code = char.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (bytes > MAX_MANAGER_BYTES) break;
    name += char;
  }
  return name;
}
