import { type ErrorName, errorNameOf } from "@quorate/proto";

/** A failed call: an error of the server, of the connection, or a timeout. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  /** The gRPC status code, 1 to 16. */
  readonly grpcCode: number;
  /** The name of the error in etcd's catalogue, or undefined if its text is not one of etcd's. */
  readonly code: ErrorName | undefined;
  /** The endpoint of the last attempt, or undefined if there was none. */
  readonly endpoint: string | undefined;

  /** @param message the server's text, unchanged: etcd's clients distinguish errors by it */
  constructor(grpcCode: number, message: string, endpoint?: string, options?: { cause?: unknown }) {
    super(message, options);
    this.grpcCode = grpcCode;
    this.code = errorNameOf(message);
    this.endpoint = endpoint;
  }
}
