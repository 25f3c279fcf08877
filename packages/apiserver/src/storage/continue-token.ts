/**
 * Continue tokens, in Kubernetes' public form (apiserver: pkg/storage/continue.go): URL-safe
 * base64 without padding of
 *
 *     {"v":"meta.k8s.io/v1","rv":1234,"start":"default/app\u0000"}
 *
 * `start` is the first key of the next page without the list's prefix. `rv` is the revision of the
 * first page, or -1 where the list goes on at the latest revision.
 */
import { equals, fromUtf8, toBase64, toUtf8, writeFromBase64 } from "@quorate/proto";
import { StorageError } from "./errors.ts";

const VERSION = "meta.k8s.io/v1";

export interface ContinuePoint {
  /** The first key of the next page, with the list's prefix. */
  readonly startKey: string;
  /** -1 for the latest. */
  readonly revision: number;
}

/** @param startKey must begin with `keyPrefix` */
export function encodeContinue(startKey: string, keyPrefix: string, revision: number): string {
  if (!startKey.startsWith(keyPrefix) || startKey === keyPrefix)
    throw new StorageError(
      "Internal",
      startKey,
      "unable to encode next field: the key and key prefix do not match",
    );
  const token = { v: VERSION, rv: revision, start: startKey.slice(keyPrefix.length) };
  return toBase64(fromUtf8(JSON.stringify(token)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}

function refuse(why: string): never {
  const message = `invalid continue token: continue key is not valid${why}`;
  throw new StorageError("InvalidContinueToken", "", message);
}

function jsonOf(token: string): { v?: unknown; rv?: unknown; start?: unknown } {
  const space = new Uint8Array(token.length);
  const bytes = space.subarray(0, writeFromBase64(space, token, 0));
  // The decoder skips what is not base64, so the length shows whether all of it was.
  if (!/^[A-Za-z0-9_-]*$/.test(token) || bytes.length !== Math.floor((token.length * 3) / 4))
    refuse(": illegal base64 data");
  try {
    const text = toUtf8(bytes);
    if (!equals(fromUtf8(text), bytes)) refuse(": invalid UTF-8");
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    if (error instanceof SyntaxError) refuse(`: ${error.message}`);
    throw error;
  }
  return refuse(": json: cannot unmarshal into a token");
}

/** Whether a path, seen from "/", has no empty, "." or ".." segments that a reader would drop. */
function isClean(path: string): boolean {
  const segments = path.split("/").slice(1);
  return segments.every((segment) => segment !== "" && segment !== "." && segment !== "..");
}

/** Throws StorageError "InvalidContinueToken" (400) for a token that is not one. */
export function decodeContinue(token: string, keyPrefix: string): ContinuePoint {
  const { v, rv, start } = jsonOf(token);
  if (v !== VERSION)
    refuse(`: server does not recognize this encoded version ${typeof v === "string" ? v : ""}`);
  if (rv !== undefined && !Number.isSafeInteger(rv)) refuse(": json: rv is no integer");
  if (rv === undefined || rv === 0)
    refuse(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (start !== undefined && typeof start !== "string") refuse(": json: start is no text");
  if (start === undefined || start === "")
    return refuse(": encoded start key empty (version meta.k8s.io/v1)");
  // A client must not leave the prefix by "..".
  const path = start.startsWith("/") ? start : `/${start}`;
  if (!isClean(path)) refuse(`: ${start}`);
  return { startKey: keyPrefix + path.slice(1), revision: rv as number };
}
