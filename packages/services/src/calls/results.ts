/**
 * From results of the member to those of gRPC, in one place: errors become statuses, and responses
 * get their header.
 */

import type { Member } from "@quorate/member";
import {
  alloc,
  EtcdError,
  GrpcCode,
  RangeResponse,
  ResponseHeader,
  varintSize,
  WireError,
  writePrefix,
} from "@quorate/proto";
import { type CommonMessage, StatusError, type UnaryHandler } from "@quorate/rpc";
import { InvalidRequestError } from "@quorate/store";

/** The status that an error of a handler ends its call with. */
export function toStatusError(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  if (error instanceof EtcdError) return new StatusError(error.grpcCode, error.message);
  // grpc-go's words for a request that it cannot decode.
  if (error instanceof WireError)
    return new StatusError(
      GrpcCode.Internal,
      `grpc: error unmarshalling request: ${error.message}`,
    );
  if (error instanceof InvalidRequestError)
    return new StatusError(GrpcCode.InvalidArgument, error.message);
  return new StatusError(GrpcCode.Unknown, error instanceof Error ? error.message : String(error));
}

const failed = (error: unknown): never => {
  throw toStatusError(error);
};

/** A handler whose errors become statuses. */
export function withStatuses(handler: UnaryHandler): UnaryHandler {
  return (request, context) => {
    try {
      const response = handler(request, context);
      return response instanceof Promise ? response.then(undefined, failed) : response;
    } catch (error) {
      throw toStatusError(error);
    }
  };
}

/** What a method of etcd's API that this version does not offer answers, in grpc-go's words. */
export function unimplemented(methodName: string): StatusError {
  return new StatusError(GrpcCode.Unimplemented, `method ${methodName} not implemented`);
}

/** The result of a request whose responses have a header. */
interface Result<T> {
  readonly error: Error | undefined;
  readonly response: T | undefined;
}

/**
 * The response with this member's header, in which the store has put the revision alone.
 * @throws EtcdError, InvalidRequestError: the error that the request came to
 */
export function completed<T extends { header: ResponseHeader | undefined }>(
  member: { header(revision: number): ResponseHeader },
  { error, response }: Result<T>,
): T & { header: ResponseHeader } {
  if (response === undefined) throw error;
  const header = member.header(response.header?.revision ?? 0);
  return Object.assign(response, { header });
}

/** Tags of the field `header` of every response, and of ResponseHeader. */
const HEADER_TAG = 0x0a;
const REVISION_TAG = 0x18;
const TERM_TAG = 0x20;

/** The fields of a header that it has beside revision and term. */
function encodedIds(member: Pick<Member, "header">): Uint8Array {
  const header = { ...member.header(0), raftTerm: 0 };
  return ResponseHeader.encode(header).slice();
}

/**
 * A response's header of now, encoded once for all responses between two changes: what they have in
 * common.
 */
export class EncodedHeader {
  readonly #member: Pick<Member, "header" | "store" | "term">;
  /** The fields of the header that no change has others of. */
  #ids: Uint8Array | undefined;
  #revision = -1;
  #term = -1;
  #field: CommonMessage | undefined;

  constructor(member: Pick<Member, "header" | "store" | "term">) {
    this.#member = member;
  }

  /** The field `header` with a revision, for one response. */
  at(revision: number): Uint8Array {
    const member = this.#member;
    const { term } = member;
    // A field that is 0 is left out.
    if (revision === 0 || term === 0)
      return RangeResponse.encode({ header: member.header(revision) });
    const ids = (this.#ids ??= encodedIds(member));
    const size = ids.length + 2 + varintSize(revision) + varintSize(term);
    const bytes = alloc(2 + size);
    bytes[0] = HEADER_TAG;
    bytes[1] = size;
    bytes.set(ids, 2);
    const end = writePrefix(bytes, 2 + ids.length, REVISION_TAG, revision);
    writePrefix(bytes, end, TERM_TAG, term);
    return bytes;
  }

  /** The field `header`, which is the first of every response; the others may follow it. */
  now(): CommonMessage {
    const member = this.#member;
    const revision = member.store.mvcc.currentRevision;
    const { term } = member;
    if (this.#field !== undefined && revision === this.#revision && term === this.#term)
      return this.#field;
    const header = member.header(revision);
    const before = RangeResponse.encode({ header }).slice();
    this.#revision = revision;
    this.#term = term;
    this.#field = { before, after: [], sizeBytes: before.length };
    return this.#field;
  }
}
