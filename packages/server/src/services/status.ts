/** From etcd's errors to gRPC's, in one place. */
import { EtcdError, GrpcStatus, WireError } from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import { InvalidRequestError } from "@quorate/store";

/** The status that an error of a handler ends its call with. */
export function toStatusError(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  if (error instanceof EtcdError) return new StatusError(error.grpcCode, error.message);
  // grpc-go's words for a request that it cannot decode.
  if (error instanceof WireError)
    return new StatusError(
      GrpcStatus.INTERNAL,
      `grpc: error unmarshalling request: ${error.message}`,
    );
  if (error instanceof InvalidRequestError)
    return new StatusError(GrpcStatus.INVALID_ARGUMENT, error.message);
  return new StatusError(
    GrpcStatus.UNKNOWN,
    error instanceof Error ? error.message : String(error),
  );
}

/** What a method of etcd's API that this version does not offer answers, in grpc-go's words. */
export function unimplemented(methodName: string): StatusError {
  return new StatusError(GrpcStatus.UNIMPLEMENTED, `method ${methodName} not implemented`);
}
