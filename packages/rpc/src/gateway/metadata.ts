/**
 * The metadata of a call from the headers of an HTTP request (grpc-gateway: runtime/context.go).
 *
 *     Grpc-Metadata-NAME: value    NAME: value
 *     Authorization: value         authorization: value
 *     Accept, Cookie, Host, ...    grpcgateway-NAME: value
 *     Grpc-Timeout: 5S             the call's deadline
 *     traceparent                  itself: tracing takes it as from a gRPC client
 */
import type { HttpHead } from "@quorate/host";
import { GrpcCode, toLatin1 } from "@quorate/proto";
import { decodeBase64 } from "../grpc/calls.ts";
import { TIMEOUT_UNITS_MS } from "../grpc/protocol.ts";
import { FORWARDED_FOR } from "../http2/peer.ts";
import type { Status } from "../service.ts";

const PREFIX = "grpc-metadata-";
/** IANA's permanent request headers, as the gateway passes them on. */
const GATEWAY_PREFIX = "grpcgateway-";
const PASSED_ON: ReadonlySet<string> = new Set([
  "accept",
  "accept-charset",
  "accept-language",
  "accept-ranges",
  "authorization",
  "cache-control",
  "content-type",
  "cookie",
  "date",
  "expect",
  "from",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-schedule-tag-match",
  "if-unmodified-since",
  "max-forwards",
  "origin",
  "pragma",
  "referer",
  "user-agent",
  "via",
  "warning",
]);
/** Header fields that are metadata under their own name. */
const AS_THEY_ARE: ReadonlySet<string> = new Set(["authorization", "traceparent"]);

/** The value of a metadata key (lower case), or undefined; of "-bin" keys the bytes as latin1. */
export function metadataOf(headers: HttpHead["headers"], key: string): string | undefined {
  // A client that spells it with the prefix would get past its proxy.
  if (key === FORWARDED_FOR) return headers.get(key);
  if (AS_THEY_ARE.has(key)) return headers.get(key) ?? headers.get(PREFIX + key);
  const value = headers.get(PREFIX + key);
  if (value !== undefined)
    return key.endsWith("-bin") ? toLatin1(decodeBase64(value)) : plainText(value);
  // There for every call of the gateway: it says that the connection's certificate is no identity.
  if (key === "grpcgateway-accept") return headers.get("accept") ?? "*/*";
  if (!key.startsWith(GATEWAY_PREFIX)) return undefined;
  const name = key.slice(GATEWAY_PREFIX.length);
  return PASSED_ON.has(name) ? headers.get(name) : undefined;
}

/** gRPC's text values are printable ASCII; the gateway leaves others out. */
function plainText(value: string): string | undefined {
  return /^[ -~]*$/.test(value) ? value : undefined;
}

/** Beyond it a deadline has no effect. */
const MAX_TIMEOUT_MS: number = 100 * 365 * 24 * 3_600_000;

/** What a head means for its call: a deadline or none, or an error. */
export interface CallHead {
  /** Milliseconds from now; undefined for none; 0 or less when it has passed. */
  readonly timeoutMs: number | undefined;
  readonly error: Status | undefined;
}

const PLAIN: CallHead = { timeoutMs: undefined, error: undefined };

/** Reads the deadline of a request and checks its binary metadata. */
export function callHead(headers: HttpHead["headers"]): CallHead {
  const timeout = headers.get("grpc-timeout");
  let timeoutMs: number | undefined;
  if (timeout !== undefined && timeout !== "") {
    timeoutMs = parseTimeout(timeout);
    if (timeoutMs === undefined) return invalid(`invalid grpc-timeout: ${timeout}`);
    // grpc-gateway takes 0 for "no deadline".
    if (timeoutMs === 0) timeoutMs = undefined;
  }
  for (const [name, value] of headers) {
    if (!name.endsWith("-bin") || !name.startsWith(PREFIX)) continue;
    const place = badBase64At(value);
    if (place < 0) continue;
    const reason = `illegal base64 data at input byte ${place}`;
    return invalid(`invalid binary header ${canonical(name)}: ${reason}`);
  }
  return timeoutMs === undefined ? PLAIN : { timeoutMs, error: undefined };
}

function invalid(message: string): CallHead {
  return { timeoutMs: undefined, error: { code: GrpcCode.InvalidArgument, message } };
}

/** Any number of digits with an optional sign, as Go's ParseInt takes them, and a unit. */
function parseTimeout(text: string): number | undefined {
  const unit = TIMEOUT_UNITS_MS[text.charAt(text.length - 1)];
  const digits = text.slice(0, -1);
  if (unit === undefined || !/^[+-]?\d{1,19}$/.test(digits)) return undefined;
  const value = BigInt(digits.replace(/^\+/, ""));
  if (BigInt.asIntN(64, value) !== value) return undefined;
  return Math.min(Number(value) * unit, MAX_TIMEOUT_MS);
}

/** Where Go's base64 decoder finds an error in a value; -1 if it finds none. */
function badBase64At(value: string): number {
  const padded = value.length % 4 === 0;
  const body = padded ? value.replace(/={1,2}$/, "") : value;
  const bad = body.search(/[^A-Za-z0-9+/]/);
  if (bad >= 0) return bad;
  return body.length % 4 === 1 ? body.length - 1 : -1;
}

/** A lower-case name as Go writes it. */
function canonical(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}
