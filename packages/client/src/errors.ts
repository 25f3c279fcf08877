import { type ErrorName, errorNameOf, GrpcCode } from "@quorate/proto";

/**
 * Every code that a ClientError can have, so that a switch over it is complete or does not compile:
 * etcd's name of the error, or the name of the gRPC status where the text is not one of etcd's.
 */
export type ErrorCode = ErrorName | Exclude<keyof typeof GrpcCode, "OK">;

const STATUS_NAMES: ReadonlyMap<number, ErrorCode> = new Map(
  Object.entries(GrpcCode)
    .filter(([name]) => name !== "OK")
    .map(([name, code]) => [code, name as ErrorCode]),
);

/** What is known of a failed call besides the server's words. */
export interface FailedCall {
  /** The gRPC path of the method, such as "/etcdserverpb.KV/Put". */
  readonly method?: string | undefined;
  /** The endpoint of the last attempt. */
  readonly endpoint?: string | undefined;
  /** How often it was tried; default 0. */
  readonly attempts?: number;
  /** Whether an attempt may have been executed; default false. */
  readonly mayHaveHappened?: boolean;
  readonly cause?: unknown;
}

/**
 * A failed call: an error of the server or of the connection, a timeout (code DeadlineExceeded), or
 * an aborted signal (code Canceled, the signal's reason as `cause`).
 */
export class ClientError extends Error {
  override readonly name = "ClientError";
  /** The gRPC status code, 1 to 16. */
  readonly grpcCode: number;
  /** The name of the error in etcd's catalogue, else of the status. */
  readonly code: ErrorCode;
  /** The gRPC path of the method, such as "/etcdserverpb.KV/Put"; undefined outside of calls. */
  readonly method: string | undefined;
  /** The endpoint of the last attempt, or undefined if there was none. */
  readonly endpoint: string | undefined;
  /** How often the call was tried. */
  readonly attempts: number;
  /**
   * Whether the server may have executed the call. False is certain: a write that failed so was not
   * made. Without meaning for a read.
   */
  readonly mayHaveHappened: boolean;

  /** @param message the server's text, unchanged: etcd's clients distinguish errors by it */
  constructor(grpcCode: number, message: string, call: FailedCall = {}) {
    super(message, call.cause === undefined ? {} : { cause: call.cause });
    this.grpcCode = grpcCode;
    this.code = errorNameOf(message) ?? STATUS_NAMES.get(grpcCode) ?? "Unknown";
    this.method = call.method;
    this.endpoint = call.endpoint;
    this.attempts = call.attempts ?? 0;
    this.mayHaveHappened = call.mayHaveHappened ?? false;
  }
}

/** A time that ran out, in the words of Go's clients. */
export function deadlineError(call: FailedCall = {}): ClientError {
  return new ClientError(GrpcCode.DeadlineExceeded, "context deadline exceeded", call);
}

/**
 * What an aborted signal makes of a call: Canceled, or DeadlineExceeded where the signal itself is
 * of a time, as AbortSignal.timeout() is.
 */
export function abortError({ reason }: AbortSignal, call: FailedCall = {}): ClientError {
  const facts = { ...call, cause: call.cause ?? reason };
  const isTime =
    reason instanceof ClientError
      ? reason.grpcCode === GrpcCode.DeadlineExceeded
      : reason instanceof Error && reason.name === "TimeoutError";
  return isTime
    ? deadlineError(facts)
    : new ClientError(GrpcCode.Canceled, "context canceled", facts);
}
