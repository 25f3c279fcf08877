/**
 * Continue tokens, in Kubernetes' public form (apiserver: pkg/storage/continue.go): URL-safe
 * base64 without padding of
 *
 *     {"v":"meta.k8s.io/v1","rv":1234,"start":"default/app\u0000"}
 *
 * `start` is the first key of the next page without the list's prefix. `rv` is the revision of the
 * first page, or -1 where the list goes on at the latest revision.
 */
import { fromUtf8, toBase64, toUtf8, writeFromBase64 } from "@quorate/proto";
import { JsonSyntaxError, jsonKind, parseJson } from "../codec/json-parser.ts";
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
    .replaceAll("=", "");
}

function refuse(why: string): never {
  const message = `invalid continue token: continue key is not valid${why}`;
  throw new StorageError("InvalidContinueToken", "", message);
}

function jsonOf(token: string): { v?: unknown; rv?: unknown; start?: unknown } {
  const illegal = token.search(/[^A-Za-z0-9_-]/);
  if (illegal >= 0 || token.length % 4 === 1)
    refuse(`: illegal base64 data at input byte ${illegal >= 0 ? illegal : token.length}`);
  const space = new Uint8Array(token.length);
  const bytes = space.subarray(0, writeFromBase64(space, token, 0));
  let value: unknown;
  try {
    value = parseJson(toUtf8(bytes));
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    refuse(`: ${error.message}`);
  }
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value))
    refuse(
      `: json: cannot unmarshal ${jsonKind(value)} into Go value of type storage.continueToken`,
    );
  for (const [field, type] of Object.entries(TYPES)) {
    const found = (value as Record<string, unknown>)[field];
    const isInteger = type !== "int64" || Number.isSafeInteger(found);
    if (found === undefined || found === null) continue;
    if (typeof found !== (type === "string" ? "string" : "number") || !isInteger) {
      const shown = typeof found === "number" ? `number ${found}` : jsonKind(found);
      const what = typeof found === "number" && type === "string" ? "number" : shown;
      refuse(
        `: json: cannot unmarshal ${what} into Go struct field continueToken.${field} of type ${type}`,
      );
    }
  }
  return value;
}

/** Go's types of a token's fields. */
const TYPES = { v: "string", rv: "int64", start: "string" } as const;

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
  if (typeof rv !== "number" || rv === 0)
    refuse(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (typeof start !== "string" || start === "")
    refuse(": encoded start key empty (version meta.k8s.io/v1)");
  // A client must not leave the prefix by "..".
  const path = start.startsWith("/") ? start : `/${start}`;
  if (!isClean(path)) refuse(`: ${start}`);
  return { startKey: keyPrefix + path.slice(1), revision: rv };
}
