/**
 * Statuses as HTTP responses (grpc-gateway: runtime/errors.go). All bodies are JSON; the fields are
 * those that etcd's gateway sends.
 */
import type { HttpExchange, HttpResponse } from "@quorate/host";
import { errorChunkJson, GrpcCode, statusJson } from "@quorate/proto";
import type { Status } from "../service.ts";

type Headers = Readonly<Record<string, string>>;

const JSON_TYPE = "application/json";
const ERROR_HEADERS: Headers = Object.freeze({ "content-type": JSON_TYPE });
/**
 * Of responses with a message: with the metadata of the call's response, of which etcd's gRPC
 * server sends its content type alone.
 */
export const MESSAGE_HEADERS: Headers = Object.freeze({
  "content-type": JSON_TYPE,
  "grpc-metadata-content-type": "application/grpc",
});

const HTTP_STATUS: ReadonlyMap<number, number> = new Map<number, number>([
  [GrpcCode.OK, 200],
  [GrpcCode.Canceled, 499],
  [GrpcCode.InvalidArgument, 400],
  [GrpcCode.DeadlineExceeded, 504],
  [GrpcCode.NotFound, 404],
  [GrpcCode.AlreadyExists, 409],
  [GrpcCode.PermissionDenied, 403],
  [GrpcCode.Unauthenticated, 401],
  [GrpcCode.ResourceExhausted, 429],
  [GrpcCode.FailedPrecondition, 400],
  [GrpcCode.Aborted, 409],
  [GrpcCode.OutOfRange, 400],
  [GrpcCode.Unimplemented, 501],
  [GrpcCode.Unavailable, 503],
]);

/** The HTTP status of a gRPC code; 500 where there is no better one. */
export function httpStatusOf(code: number): number {
  return HTTP_STATUS.get(code) ?? 500;
}

/** A response that is an error. */
export function errorResponse(status: Status): HttpResponse {
  const { code, message } = status;
  const headers =
    code === GrpcCode.Unauthenticated
      ? { ...ERROR_HEADERS, "www-authenticate": headerText(message) }
      : ERROR_HEADERS;
  return { status: httpStatusOf(code), headers, body: statusJson(code, message) };
}

/** Ends a stream with an error: as its last chunk, or as its only one with the error's status. */
export function endStream(exchange: HttpExchange, hasStarted: boolean, status: Status): void {
  const { code, message } = status;
  if (!hasStarted) exchange.start(httpStatusOf(code), ERROR_HEADERS);
  exchange.send(errorChunkJson(code, message));
  exchange.end();
}

/** A text as the value of a header: what a header may not contain becomes a space. */
function headerText(text: string): string {
  return text.replace(/[^\t -~]/g, " ");
}
