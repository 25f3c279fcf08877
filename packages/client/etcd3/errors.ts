/** The errors of npm's etcd3, by name and by what they are recognised by. */
import { GrpcCode } from "@quorate/proto";
import { ClientError } from "../src/errors.ts";

/** The client was used in a way that it does not support. */
export class ClientRuntimeError extends Error {}

/** A call of a client that was closed. */
export class ClientClosedError extends Error {
  /** @param service the name of the service, such as "KV" */
  constructor(service: string) {
    super(`${service}: the client is closed`);
  }
}

/** A property of errors behind which a repeated call may succeed. */
export const RecoverableError: unique symbol = Symbol("RecoverableError");

export function isRecoverableError(error: Error): boolean {
  return RecoverableError in error;
}

/** A gRPC status that has no error of etcd's own. */
export class GRPCGenericError extends Error {}

class RecoverableStatus extends GRPCGenericError {
  readonly [RecoverableError] = true;
}

export class GRPCProtocolError extends GRPCGenericError {}
export class GRPCInternalError extends RecoverableStatus {}
export class GRPCCancelledError extends RecoverableStatus {}
export class GRPCUnknownError extends RecoverableStatus {}
export class GRPCInvalidArgumentError extends GRPCGenericError {}
export class GRPCDeadlineExceededError extends RecoverableStatus {}
export class GRPCNotFoundError extends GRPCGenericError {}
export class GRPCAlreadyExistsError extends GRPCGenericError {}
/** Spelled as in npm's etcd3. */
export class GRPCResourceExhastedError extends RecoverableStatus {}
export class GRPCFailedPreconditionError extends GRPCGenericError {}
export class GRPCAbortedError extends RecoverableStatus {}
export class GRPCNotImplementedError extends GRPCGenericError {}
export class GRPCOutOfRangeError extends GRPCGenericError {}
export class GRPCDataLossError extends GRPCGenericError {}
export class GRPCUnavailableError extends RecoverableStatus {}
export class GRPCUnauthenticatedError extends GRPCGenericError {}

/** An error of etcd that has no class of its own. */
export class EtcdError extends Error {}

/** The lease has expired or was revoked. */
export class EtcdLeaseInvalidError extends Error {
  /** @param leaseID the lease, or the server's words about it */
  constructor(leaseID: string) {
    super(`Lease ${leaseID} is expired or revoked`);
  }
}

export class EtcdRoleExistsError extends Error {}
export class EtcdUserExistsError extends Error {}
export class EtcdRoleNotGrantedError extends Error {}
export class EtcdRoleNotFoundError extends Error {}
export class EtcdUserNotFoundError extends Error {}
/** Another one holds the lock. */
export class EtcdLockFailedError extends Error {}
export class EtcdAuthenticationFailedError extends Error {}
export class EtcdInvalidAuthTokenError extends Error {}
export class EtcdPermissionDeniedError extends Error {}

/** The stream of a watch ended. The watch goes on over a new one. */
export class EtcdWatchStreamEnded extends Error {
  constructor() {
    super("the stream of the watch ended");
  }
}

/** The candidate has resigned, or its key is gone. */
export class NotCampaigningError extends Error {}

/** Something that the transaction read or wrote has changed meanwhile. */
export class STMConflictError extends Error {
  constructor() {
    super("a conflict with another transaction");
  }
}

type ErrorClass = new (message: string) => Error;

/** By a part of the server's text. */
const BY_TEXT: readonly (readonly [text: string, is: ErrorClass])[] = [
  ["etcdserver: role name already exists", EtcdRoleExistsError],
  ["etcdserver: user name already exists", EtcdUserExistsError],
  ["etcdserver: role is not granted to the user", EtcdRoleNotGrantedError],
  ["etcdserver: role name not found", EtcdRoleNotFoundError],
  ["etcdserver: user name not found", EtcdUserNotFoundError],
  ["etcdserver: authentication failed, invalid user ID or password", EtcdAuthenticationFailedError],
  ["etcdserver: permission denied", EtcdPermissionDeniedError],
  ["etcdserver: invalid auth token", EtcdInvalidAuthTokenError],
  ["etcdserver: requested lease not found", EtcdLeaseInvalidError],
];

const BY_CODE: ReadonlyMap<number, ErrorClass> = new Map<number, ErrorClass>([
  [GrpcCode.Canceled, GRPCCancelledError],
  [GrpcCode.Unknown, GRPCUnknownError],
  [GrpcCode.InvalidArgument, GRPCInvalidArgumentError],
  [GrpcCode.DeadlineExceeded, GRPCDeadlineExceededError],
  [GrpcCode.NotFound, GRPCNotFoundError],
  [GrpcCode.AlreadyExists, GRPCAlreadyExistsError],
  [GrpcCode.PermissionDenied, EtcdPermissionDeniedError],
  [GrpcCode.ResourceExhausted, GRPCResourceExhastedError],
  [GrpcCode.FailedPrecondition, GRPCFailedPreconditionError],
  [GrpcCode.Aborted, GRPCAbortedError],
  [GrpcCode.OutOfRange, GRPCOutOfRangeError],
  [GrpcCode.Unimplemented, GRPCNotImplementedError],
  [GrpcCode.Internal, GRPCInternalError],
  [GrpcCode.Unavailable, GRPCUnavailableError],
  [GrpcCode.DataLoss, GRPCDataLossError],
  [GrpcCode.Unauthenticated, GRPCUnauthenticatedError],
]);

/** DEADLINE_EXCEEDED, as gRPC's own clients call it. */
const STATUS_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(GrpcCode).map(([name, code]) => [
    code,
    name === "Canceled" ? "CANCELLED" : name.replace(/(?!^)[A-Z]/g, "_$&").toUpperCase(),
  ]),
);

function classOf(text: string): ErrorClass | undefined {
  return BY_TEXT.find(([part]) => text.includes(part))?.[1];
}

/** The error with that text of the server. */
export function castGrpcErrorMessage(message: string): Error {
  return new (classOf(message) ?? EtcdError)(message);
}

/**
 * The error that npm's etcd3 has for a failed call, whose message begins with the status as gRPC's
 * clients write it; `cause` is the failure. An error that has a class of its own stays as it is.
 */
export function castGrpcError(error: Error): Error {
  if (!(error instanceof ClientError) && error.constructor !== Error) return error;
  const { code, text } = statusOf(error);
  const own = text.includes("etcdserver:") ? EtcdError : GRPCGenericError;
  const is = classOf(text) ?? BY_CODE.get(code ?? -1) ?? own;
  const message =
    error instanceof ClientError ? `${code} ${STATUS_NAMES.get(code!)}: ${text}` : text;
  return Object.assign(new is(message), { code, details: text, cause: error });
}

function statusOf(error: Error): { readonly code: number | undefined; readonly text: string } {
  if (!(error instanceof ClientError))
    return { code: (error as { code?: number }).code, text: error.message };
  const { cause } = error;
  // Where no member could be reached in the time of a call, that is what programs look for.
  if (error.code === "DeadlineExceeded" && cause instanceof Error && "grpcCode" in cause)
    return { code: cause.grpcCode as number, text: cause.message };
  return { code: error.grpcCode, text: error.message };
}
