/** Comparisons and operations of v3's transactions, from keys in latin1. */
import {
  Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  fromLatin1,
  PutRequest,
  RangeRequest,
  type RequestOp,
} from "@quorate/proto";
import type { Range } from "./keys.ts";

const { EQUAL, GREATER } = Compare_CompareResult;
const { VERSION, MOD, LEASE, VALUE } = Compare_CompareTarget;

/** The key exists. */
export function exists(key: string): Compare {
  return Compare.create({
    result: GREATER,
    target: VERSION,
    key: fromLatin1(key),
    targetUnion: { case: "version", value: 0 },
  });
}

/** The key, or each key of the range, does not exist. */
export function absent(key: string, rangeEnd = ""): Compare {
  return Compare.create({
    result: EQUAL,
    target: VERSION,
    key: fromLatin1(key),
    rangeEnd: fromLatin1(rangeEnd),
    targetUnion: { case: "version", value: 0 },
  });
}

/** The key was last written at a revision; 0: it does not exist. */
export function unchanged(key: string, revision: number): Compare {
  return Compare.create({
    result: EQUAL,
    target: MOD,
    key: fromLatin1(key),
    targetUnion: { case: "modRevision", value: revision },
  });
}

/** The key exists and has a value. */
export function sameValue(key: string, value: Uint8Array): Compare {
  return Compare.create({
    result: EQUAL,
    target: VALUE,
    key: fromLatin1(key),
    targetUnion: { case: "value", value },
  });
}

/** The key is attached to a lease. */
export function attached(key: string, lease: bigint): Compare {
  return Compare.create({
    result: EQUAL,
    target: LEASE,
    key: fromLatin1(key),
    targetUnion: { case: "lease", value: lease },
  });
}

/** Writes a key. */
export function put(
  key: string,
  value: Uint8Array,
  options: Partial<Omit<PutRequest, "key" | "value">> = {},
): RequestOp {
  const value_ = PutRequest.create({ ...options, key: fromLatin1(key), value });
  return { request: { case: "requestPut", value: value_ } };
}

/** Deletes a key. */
export function remove(key: string): RequestOp {
  return { request: { case: "requestDeleteRange", value: deletion(key, "") } };
}

/** Deletes a range of keys. */
export function removeAll({ key, rangeEnd }: Range): RequestOp {
  return { request: { case: "requestDeleteRange", value: deletion(key, rangeEnd) } };
}

function deletion(key: string, rangeEnd: string): DeleteRangeRequest {
  return DeleteRangeRequest.create({ key: fromLatin1(key), rangeEnd: fromLatin1(rangeEnd) });
}

/** Looks for one key of a range. */
export function anyOf({ key, rangeEnd }: Range): RequestOp {
  const value = RangeRequest.create({
    key: fromLatin1(key),
    rangeEnd: fromLatin1(rangeEnd),
    limit: 1,
    keysOnly: true,
  });
  return { request: { case: "requestRange", value } };
}
