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
