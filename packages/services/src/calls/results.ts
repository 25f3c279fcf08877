/**
 * From results of the member to those of gRPC, in one place: errors become statuses, and responses
 * get their header.
 */

import type { Member } from "@quorate/member";
import { EtcdError, GrpcCode, RangeResponse, type ResponseHeader, WireError } from "@quorate/proto";
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

/**
 * A response's header of now, encoded once for all responses between two changes: what they have in
 * common.
 */
export class EncodedHeader {
  readonly #member: Member;
  #revision = -1;
  #term = -1;
  #field: CommonMessage | undefined;

  constructor(member: Member) {
    this.#member = member;
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
