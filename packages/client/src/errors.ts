/** How a call fails. */
import { type ErrorName, errorNameOf } from "@quorate/proto";

/** A call that failed: on the server, on the way, or for want of time. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  /** The gRPC status code, 1 to 16. */
  readonly grpcCode: number;
  /** The name of the error in etcd's catalogue, or undefined if its text is not one of etcd's. */
  readonly code: ErrorName | undefined;
  /** The endpoint that was asked last, or undefined if none was. */
  readonly endpoint: string | undefined;

  /** @param message the server's text, unchanged: that is how etcd's clients tell errors apart */
  constructor(grpcCode: number, message: string, endpoint?: string, options?: { cause?: unknown }) {
    super(message, options);
    this.grpcCode = grpcCode;
    this.code = errorNameOf(message);
    this.endpoint = endpoint;
  }
}
