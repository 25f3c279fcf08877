/** From results of the member to those of gRPC: etcd's errors become statuses, in one place. */
import { EtcdError, GrpcCode, type ResponseHeader, WireError } from "@quorate/proto";
import { StatusError, type UnaryHandler } from "@quorate/rpc";
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
