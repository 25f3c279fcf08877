/**
 * The data of a log entry: checked before it enters the log, blamed where applying it has failed.
 *
 *     InternalRaftRequest { header {ID}, exactly one of put, txn, ... }   stays encoded
 */
import { InternalRaftRequest, Reader, WireError } from "@quorate/proto";
import { InvalidRequestError } from "../entry/invalid-request.ts";
import type { RequestLimits } from "./request-record.ts";
import { checkRequest, REQUEST_RECORDS } from "./request-table.ts";
import { innerRequest } from "./token-roles.ts";
import { fromV2 } from "./v2-request.ts";

/**
 * The request in an entry's data; one of etcd's v2 store as that of v3 with the same effect.
 * @throws WireError; InvalidRequestError
 */
export function decodeEntry(data: Uint8Array): InternalRaftRequest {
  try {
    const entry = InternalRaftRequest.decode(data);
    return entry.v2 === undefined ? entry : (fromV2(entry.v2) ?? entry);
  } catch (error) {
    const entry = error instanceof WireError ? fromV2(data) : undefined;
    if (entry === undefined) throw error;
    return entry;
  }
}

/** The tags of field 1, a varint, and field 2: how each request of etcd's v2 store begins. */
const V2_TAGS: ReadonlySet<number | undefined> = new Set([0x08, 0x12]);

/** Whether an entry's data is a request of etcd's v2 store. */
export function isV2(data: Uint8Array): boolean {
  if (!V2_TAGS.has(data[0])) return false;
  try {
    const { v2 } = InternalRaftRequest.decode(data);
    return v2 !== undefined && fromV2(v2) !== undefined;
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return fromV2(data) !== undefined;
  }
}

/** Fields of InternalRaftRequest that are not requests: ID and header. */
const ENVELOPE_FIELDS: ReadonlySet<number> = new Set([1, 100]);

/** The number of requests in an entry's data, those of unknown kinds included. Throws WireError. */
function countRequests(data: Uint8Array): number {
  const reader = new Reader(data);
  let requests = 0;
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (!ENVELOPE_FIELDS.has(tag >>> 3)) requests++;
    reader.skip(tag, {});
  }
  return requests;
}

/**
 * Checks the data of an entry that another member proposes: an InternalRaftRequest with one request
 * of a known kind, valid in itself.
 * @returns the request's id
 * @throws WireError, EtcdError, InvalidRequestError
 */
export function checkEntryData(data: Uint8Array, limits: RequestLimits): bigint {
  if (isV2(data)) {
    const { ID, clusterVersionSet } = decodeEntry(data);
    if (clusterVersionSet !== undefined)
      checkRequest("clusterVersionSet", clusterVersionSet, limits);
    return ID;
  }
  // Counted before decoding: the parts of a repeated request are merged, at a quadratic cost.
  checkOne(data);
  const internal = InternalRaftRequest.decode(data);
  const inner = innerRequest(internal);
  if (inner !== undefined) checkOne(inner);
  const carried = inner === undefined ? internal : InternalRaftRequest.decode(inner);
  for (const [kind] of REQUEST_RECORDS) {
    const bytes = carried[kind];
    if (bytes === undefined) continue;
    checkRequest(kind, bytes, limits);
    return internal.ID !== 0n ? internal.ID : (internal.header?.ID ?? 0n);
  }
  throw new InvalidRequestError(
    "an entry with a request of a kind that this version does not serve",
  );
}

function checkOne(data: Uint8Array): void {
  const requests = countRequests(data);
  if (requests === 1) return;
  throw new InvalidRequestError(`an entry with ${requests} requests instead of one`);
}

/**
 * Why an entry's data cannot be applied by any member: it does not decode, or carries no request.
 * Undefined where it decodes, also where its request is of a kind that only a newer version knows.
 * Slow: for when applying has failed.
 */
export function malformation(data: Uint8Array): InvalidRequestError | undefined {
  try {
    if (countRequests(data) === 0) return new InvalidRequestError("the entry carries no request");
    const whole = InternalRaftRequest.decode(data);
    const inner = innerRequest(whole);
    if (inner !== undefined && countRequests(inner) === 0)
      return new InvalidRequestError("the roles of a token are around no request");
    const internal = inner === undefined ? whole : InternalRaftRequest.decode(inner);
    if (inner !== undefined && internal.tokenRoles !== undefined)
      return new InvalidRequestError("roles of a token are within such roles");
    for (const [kind, { type }] of REQUEST_RECORDS) {
      const bytes = internal[kind];
      if (bytes !== undefined) type.decode(bytes);
    }
    return undefined;
  } catch (error) {
    if (error instanceof InvalidRequestError) return error;
    if (error instanceof WireError)
      return new InvalidRequestError(`the entry does not decode: ${error.message}`);
    throw error;
  }
}
