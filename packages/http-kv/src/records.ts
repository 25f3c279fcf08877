/**
 * Keys and values as JSON, and as headers.
 *
 *     {"key":"a","value":"1","create_revision":2,"mod_revision":3,"version":2,"lease":"77"}
 *     {"key":{"base64":"/w=="},"value":{"base64":"AP8="},...}
 *
 * Bytes are a text where they are UTF-8, else an object with their base64. A lease is the text of
 * a decimal number, as it may be beyond 2^53; no lease, no field.
 */
import { equals, fromUtf8, KeyValue, toBase64, toUtf8 } from "@quorate/proto";
import { etagOf } from "./preconditions.ts";

/** What malformed UTF-8 is decoded to. */
const REPLACEMENT = "\ufffd";

/** The text of bytes that are UTF-8; undefined for others. */
export function utf8Of(bytes: Uint8Array): string | undefined {
  const text = toUtf8(bytes);
  // The character may also be one of the text.
  return text.includes(REPLACEMENT) && !equals(fromUtf8(text), bytes) ? undefined : text;
}

/** Bytes as JSON: a string, or {"base64": ...}. */
export function jsonOfBytes(bytes: Uint8Array): string {
  const text = utf8Of(bytes);
  return text === undefined ? `{"base64":"${toBase64(bytes)}"}` : JSON.stringify(text);
}

/** The first of the records of a range, decoded; undefined where there is none. */
export function firstPair([record]: readonly Uint8Array[]): KeyValue | undefined {
  return record === undefined ? undefined : KeyValue.decode(record);
}

/** A pair as a JSON object. */
export function jsonOfPair(kv: KeyValue, { keysOnly = false } = {}): string {
  const value = keysOnly ? "" : `,"value":${jsonOfBytes(kv.value)}`;
  const lease = kv.lease === 0n ? "" : `,"lease":"${kv.lease}"`;
  return (
    `{"key":${jsonOfBytes(kv.key)}${value},"create_revision":${kv.createRevision}` +
    `,"mod_revision":${kv.modRevision},"version":${kv.version}${lease}}`
  );
}

/** The revision of the store at a response. */
export function revisionHeader(revision: number): { "quorate-revision": string } {
  return { "quorate-revision": String(revision) };
}

/** The headers of a response about one pair. @param revision of the store */
export function pairHeaders(kv: KeyValue, revision: number): Record<string, string> {
  const headers: Record<string, string> = {
    etag: etagOf(kv.modRevision),
    ...revisionHeader(revision),
    "quorate-create-revision": String(kv.createRevision),
    "quorate-mod-revision": String(kv.modRevision),
    "quorate-version": String(kv.version),
  };
  if (kv.lease !== 0n) headers["quorate-lease"] = String(kv.lease);
  return headers;
}
