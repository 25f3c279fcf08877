/**
 * gRPC's texts in HTTP headers: messages, timeouts, binary values, and grpc-go's text for an
 * unknown method.
 */
import { toHex, toUtf8 } from "@quorate/proto";
import type { ServiceTable } from "./service.ts";

const PLAIN_MESSAGE = /^[ -$&-~]*$/;
const PART = /[ -$&-~]+|[^ -$&-~]/gsu;

/**
 * A status message as the value of grpc-message: UTF-8, with all but printable ASCII, and "%",
 * percent-encoded.
 */
export function encodeGrpcMessage(text: string): string {
  if (PLAIN_MESSAGE.test(text)) return text;
  return text
    .toWellFormed()
    .replace(PART, (part) => (PLAIN_MESSAGE.test(part) ? part : percentEncoded(part)));
}

function percentEncoded(character: string): string {
  const code = character.codePointAt(0)!;
  // encodeURIComponent leaves some ASCII unchanged; here the character is a control character, "%",
  // or beyond ASCII.
  return code < 0x80
    ? `%${code.toString(16).toUpperCase().padStart(2, "0")}`
    : encodeURIComponent(character);
}

/** Milliseconds of the units of a grpc-timeout. */
export const TIMEOUT_UNITS_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Milliseconds of a grpc-timeout value (1 to 8 digits and a unit), or undefined if it is malformed.
 */
export function parseTimeoutMs(value: string): number | undefined {
  const unit = TIMEOUT_UNITS_MS[value.charAt(value.length - 1)];
  const digits = value.slice(0, -1);
  return unit !== undefined && /^\d{1,8}$/.test(digits) ? Number(digits) * unit : undefined;
}

/** grpc-go's text for an unknown method, sent as UNIMPLEMENTED. */
export function unknownMethodText(services: ServiceTable, path: string): string {
  const slash = path.lastIndexOf("/");
  if (!path.startsWith("/") || slash === 0) return `malformed method name: ${JSON.stringify(path)}`;
  const prefix = path.slice(0, slash + 1);
  for (const methods of [services.unary, services.stream]) {
    for (const known of methods.keys()) {
      if (known.startsWith(prefix) && known.lastIndexOf("/") === slash) {
        return `unknown method ${path.slice(slash + 1)} for service ${path.slice(1, slash)}`;
      }
    }
  }
  return `unknown service ${path.slice(1, slash)}`;
}

/** Bytes that should have been text, for a log line. */
export function printable(bytes: Uint8Array): string {
  const text = toUtf8(bytes);
  return text.includes("\ufffd") ? toHex(bytes) : text;
}
