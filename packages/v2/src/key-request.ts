/**
 * A request for /v2/keys, parsed and checked in etcd's order (etcd 3.4:
 * etcdserver/api/v2http/client.go, parseKeyRequest).
 */
import type { HttpHead } from "@quorate/host";
import { goBool } from "@quorate/proto";
import { MAX_LEASE_TTL_SECONDS } from "@quorate/store";
import { V2Error } from "./errors.ts";
import { type Form, FormError, firstValue, parseForm } from "./form.ts";
import { cleanPath, type Path } from "./keys.ts";

/** Names in a path. Making a node's directories takes two operations of a transaction each. */
export const MAX_PATH_NAMES = 50;
/** Bytes of a path. */
export const MAX_PATH_BYTES = 4096;

/** The largest index that a number holds exactly. */
const MAX_INDEX = BigInt(Number.MAX_SAFE_INTEGER);
const MAX_UINT64 = 2n ** 64n - 1n;

/** What a client asks of the keys. */
export interface KeyRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  readonly path: Path;
  /** Latin1. */
  readonly value: string;
  readonly isDir: boolean;
  /** "": no comparison. */
  readonly prevValue: string;
  /** 0: no comparison. */
  readonly prevIndex: number;
  readonly prevExist: boolean | undefined;
  readonly ttlSeconds: number | undefined;
  readonly isRefresh: boolean;
  readonly isRecursive: boolean;
  readonly isSorted: boolean;
  readonly isQuorum: boolean;
  readonly isWait: boolean;
  /** 0: from now on. */
  readonly waitIndex: number;
  readonly isStream: boolean;
  readonly noValueOnSuccess: boolean;
}

/**
 * @param path the decoded path of the key, latin1
 * @throws V2Error with index 0
 */
export function parseKeyRequest(head: HttpHead, path: string, body: Uint8Array): KeyRequest {
  const form = formOf(head, body);
  const prevIndex = index(form, "prevIndex");
  const waitIndex = index(form, "waitIndex");
  const flags = {
    isRecursive: flag(form, "recursive"),
    isSorted: flag(form, "sorted"),
    isWait: flag(form, "wait"),
    isDir: flag(form, "dir"),
    isQuorum: flag(form, "quorum"),
    isStream: flag(form, "stream"),
  };
  if (flags.isWait && head.method !== "GET")
    throw new V2Error("InvalidField", '"wait" can only be used with GET requests');
  const prevValue = firstValue(form, "prevValue");
  if (form.has("prevValue") && prevValue === "")
    throw new V2Error("PrevValueRequired", '"prevValue" cannot be empty');
  const noValueOnSuccess = flag(form, "noValueOnSuccess");
  const ttlSeconds = ttlOf(form);
  const prevExist = form.has("prevExist")
    ? flag(form, "prevExist", "invalid value for prevExist")
    : undefined;
  const isRefresh = flag(form, "refresh", "invalid value for refresh");
  const value = firstValue(form, "value");
  if (isRefresh && value !== "")
    throw new V2Error("RefreshValue", "A value was provided on a refresh");
  if (isRefresh && ttlSeconds === undefined)
    throw new V2Error("RefreshTtlRequired", "No TTL value set");
  return {
    method: head.method as KeyRequest["method"],
    path: boundedPath(path),
    value,
    prevValue,
    prevIndex,
    prevExist,
    ttlSeconds,
    isRefresh,
    waitIndex,
    noValueOnSuccess,
    ...flags,
  };
}

function formOf(head: HttpHead, body: Uint8Array): Form {
  try {
    return parseForm(head, body);
  } catch (error) {
    if (error instanceof FormError) throw new V2Error("InvalidForm", error.message);
    throw error;
  }
}

function boundedPath(path: string): Path {
  if (path.length > MAX_PATH_BYTES)
    throw new V2Error("InvalidField", `the key is longer than ${MAX_PATH_BYTES} bytes`);
  const names = cleanPath(path);
  if (names.length > MAX_PATH_NAMES)
    throw new V2Error("InvalidField", `the key has more than ${MAX_PATH_NAMES} names`);
  return names;
}

/** As strconv.ParseUint; undefined where that fails. */
function uint64(text: string): bigint | undefined {
  if (!/^[0-9]{1,40}$/.test(text)) return undefined;
  const value = BigInt(text);
  return value <= MAX_UINT64 ? value : undefined;
}

function index(form: Form, name: string): number {
  const text = form.get(name)?.[0];
  if (text === undefined) return 0;
  const value = uint64(text);
  if (value === undefined) throw new V2Error("IndexNaN", `invalid value for "${name}"`);
  // No revision is as large: it equals none, and lies before none.
  return Number(value < MAX_INDEX ? value : MAX_INDEX);
}

/** As strconv.ParseBool. */
function flag(form: Form, name: string, text = `invalid value for "${name}"`): boolean {
  const value = goBool(form.get(name)?.[0] ?? "false");
  if (value === undefined) throw new V2Error("InvalidField", text);
  return value;
}

/** etcd's durations overflow from 292 years on; a lease ends at 285, and so does what is taken. */
function ttlOf(form: Form): number | undefined {
  const text = firstValue(form, "ttl");
  if (text === "") return undefined;
  const value = uint64(text);
  if (value === undefined || value > BigInt(MAX_LEASE_TTL_SECONDS))
    throw new V2Error("TtlNaN", 'invalid value for "ttl"');
  return Number(value);
}
