/**
 * Results as JSON.stringify writes them: bytes in base64 and bigints as decimal texts, as etcd's
 * JSON gateway does; bigints have no JSON, and a Buffer's is an array of numbers.
 */
import { toBase64 } from "@quorate/proto";

const TO_JSON: PropertyDescriptor = {
  // Not enumerable: copies, comparisons and loops do not see it.
  enumerable: false,
  configurable: true,
  value(this: object) {
    return plain({ ...this });
  },
};

/** Gives a result, and all messages in it, a toJSON. Returns it. */
export function withJson<T extends object>(result: T): T {
  if ("toJSON" in result) return result;
  Object.defineProperty(result, "toJSON", TO_JSON);
  for (const name in result) {
    const value: unknown = result[name];
    if (!isMessage(value)) continue;
    if (!Array.isArray(value)) withJson(value);
    else if (isMessage(value[0])) for (const one of value) addTo(one);
  }
  return result;
}

function addTo(value: unknown): void {
  if (isMessage(value)) withJson(value);
}

function isMessage(value: unknown): value is object {
  return typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Uint8Array) return toBase64(value);
  if (Array.isArray(value)) return value.map(plain);
  if (!isMessage(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
}
