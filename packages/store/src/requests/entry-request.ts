/**
 * The data of a log entry: checked before it enters the log, blamed where applying it has failed.
 *
 *     InternalRaftRequest { header {ID}, exactly one of put, txn, ... }   stays encoded
 */
import {
  defined,
  fieldRows,
  InternalRaftRequest,
  Reader,
  RequestHeader,
  sharedWriter,
  WireError,
} from "@quorate/proto";
import { InvalidRequestError } from "../entry/invalid-request.ts";
import type { RequestLimits } from "./request-record.ts";
import {
  type AnyRequestRecord,
  checkRequest,
  REQUEST_RECORDS,
  type RequestKind,
} from "./request-table.ts";
import { innerRequest } from "./token-roles.ts";
import { fromV2 } from "./v2-request.ts";

const FIELDS = fieldRows("etcdserverpb.InternalRaftRequest");
const HEADER = defined(
  FIELDS.find(({ property }) => property === "header"),
  "the field header",
);

/** The tag of a field that is a message. */
const tagOf = (field: number): number => field * 8 + 2;
const HEADER_TAG = tagOf(HEADER.id);

/** A kind of request, its record, and the tag of its field. */
interface KnownRequest {
  readonly kind: RequestKind;
  readonly record: AnyRequestRecord;
  readonly tag: number;
}

const KNOWN_REQUESTS: readonly KnownRequest[] = REQUEST_RECORDS.map(([kind, record]) => {
  const row = FIELDS.find(({ property }) => property === kind);
  return { kind, record, tag: tagOf(defined(row, kind).id) };
});
const BY_TAG = new Map(KNOWN_REQUESTS.map((one) => [one.tag, one]));
const BY_KIND = new Map(KNOWN_REQUESTS.map((one) => [one.kind, one]));

/** The data of an entry; the fields in the order of their numbers, as protobuf writes them. */
export function encodeEntry(
  header: RequestHeader,
  kind: RequestKind,
  request: Uint8Array,
): Uint8Array {
  const { tag } = defined(BY_KIND.get(kind), kind);
  const writer = sharedWriter;
  writer.reset();
  if (tag < HEADER_TAG) writeRequest(tag, request);
  writer.uint32(HEADER_TAG);
  const start = writer.open();
  RequestHeader.encodeTo(writer, header);
  writer.close(start);
  if (tag > HEADER_TAG) writeRequest(tag, request);
  return writer.finish();
}

function writeRequest(tag: number, request: Uint8Array): void {
  sharedWriter.uint32(tag);
  sharedWriter.view(request);
}

/** The usual form of an entry, as encodeEntry makes it: a header and one request, each once. */
export interface PlainEntry {
  readonly header: RequestHeader;
  readonly known: KnownRequest;
}

/**
 * An entry's data in its usual form; undefined for any other, and for what does not decode. With
 * decodeEntry each entry would have an object with a field for each kind of request.
 * @param reader afterwards about to read the request
 */
export function plainEntry(data: Uint8Array, reader: Reader): PlainEntry | undefined {
  let header: RequestHeader | undefined;
  let known: KnownRequest | undefined;
  let start = 0;
  let end = 0;
  try {
    reader.reset(data);
    while (reader.pos < reader.end) {
      const tag = reader.tag();
      if (tag === HEADER_TAG && header === undefined) {
        const outer = reader.enter();
        header = RequestHeader.decodeFrom(reader);
        reader.leave(outer);
      } else {
        if (known !== undefined) return undefined;
        known = BY_TAG.get(tag);
        if (known === undefined) return undefined;
        start = reader.content();
        end = reader.pos;
      }
    }
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
  if (header === undefined || known === undefined) return undefined;
  reader.reset(data, start, end);
  return { header, known };
}

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
