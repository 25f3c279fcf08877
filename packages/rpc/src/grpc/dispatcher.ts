/** Routes a connection's requests: gRPC calls to their methods, all others to the HTTP handler. */
import { GrpcCode } from "@quorate/proto";
import type { HeaderField } from "../hpack/header-field.ts";
import { Http2Exchange, refuseHttpHeaders } from "../http/http2-exchange.ts";
import type { Http2Connection, RequestAcceptor } from "../http2/connection.ts";
import type { Http2Stream } from "../http2/stream.ts";
import type { ServiceTable, Status, StreamHandler, UnaryHandler } from "../service.ts";
import { StreamingCall, UnaryCall } from "./calls.ts";
import {
  ACCEPTED_ENCODINGS,
  encodingOf,
  parseTimeoutMs,
  trailersOnly,
  unknownEncoding,
  unknownMethodText,
} from "./protocol.ts";
import type { GrpcShared } from "./shared.ts";

/** The handler of a path; cached with the path's entry in the client's header table. */
class Route {
  readonly services: ServiceTable;
  readonly unary: UnaryHandler | undefined;
  readonly stream: StreamHandler | undefined;

  constructor(services: ServiceTable, path: string) {
    this.services = services;
    this.unary = services.unary.get(path);
    this.stream = services.stream.get(path);
  }
}

const GRPC = "application/grpc";
const MAX_REFUSAL_CHARS = 500;
const HEADERS_TOO_LARGE: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: received header list larger than max",
};

export class Dispatcher implements RequestAcceptor {
  readonly #shared: GrpcShared;
  readonly #serves: "all" | "grpc" | "http";

  /** @param serves the requests that are served; others get the response for unknown paths. */
  constructor(shared: GrpcShared, serves: "all" | "grpc" | "http") {
    this.#shared = shared;
    this.#serves = serves;
  }

  accept(connection: Http2Connection, stream: Http2Stream, ended: boolean): void {
    const { contentType } = stream.head;
    if (this.#serves !== "http" && contentType !== undefined && isGrpcType(contentType))
      this.#call(connection, stream, ended);
    else if (this.#serves !== "grpc")
      new Http2Exchange(this.#shared.http, connection, stream, ended);
    else {
      const message = `invalid gRPC request content-type ${JSON.stringify(contentType ?? "")}`;
      refuse(connection, stream, { code: GrpcCode.InvalidArgument, message }, 415);
    }
  }

  refuseTooLarge(connection: Http2Connection, stream: Http2Stream): void {
    const { contentType } = stream.head;
    if (contentType !== undefined && isGrpcType(contentType))
      refuse(connection, stream, HEADERS_TOO_LARGE, 431);
    else refuseHttpHeaders(this.#shared.http, connection, stream);
  }

  #call(connection: Http2Connection, stream: Http2Stream, ended: boolean): void {
    const shared = this.#shared;
    const head = stream.head;
    if (head.method !== "POST") {
      const message = `Received a HEADERS frame with :method ${JSON.stringify(head.method)} which should be POST`;
      refuse(connection, stream, { code: GrpcCode.Internal, message }, 405);
      return;
    }
    let deadlineMs: number | undefined;
    if (head.grpcTimeout !== undefined) {
      const timeoutMs = parseTimeoutMs(head.grpcTimeout);
      if (timeoutMs === undefined) {
        refuse(
          connection,
          stream,
          { code: GrpcCode.Internal, message: `malformed grpc-timeout: ${head.grpcTimeout}` },
          400,
        );
        return;
      }
      if (timeoutMs === 0) {
        refuse(connection, stream, {
          code: GrpcCode.DeadlineExceeded,
          message: "context deadline exceeded",
        });
        return;
      }
      deadlineMs = connection.nowMs + timeoutMs;
    }
    const route = routeOf(head.path, shared.services);
    if (route.unary === undefined && route.stream === undefined) {
      refuse(connection, stream, {
        code: GrpcCode.Unimplemented,
        message: unknownMethodText(shared.services, head.path.value),
      });
      return;
    }
    const encoding = encodingOf(head.grpcEncoding);
    if (encoding === "unknown") {
      refuse(connection, stream, unknownEncoding(head.grpcEncoding!), 200, ACCEPTED_ENCODINGS);
      return;
    }
    const gzip = encoding === "gzip";
    if (route.unary !== undefined) {
      const call = new UnaryCall(shared, connection, stream, deadlineMs, gzip, route.unary);
      if (ended) call.ended();
    } else if (route.stream !== undefined)
      new StreamingCall(shared, connection, stream, deadlineMs, gzip, route.stream, ended);
  }
}

function routeOf(path: HeaderField, services: ServiceTable): Route {
  const known = path.memo;
  if (known instanceof Route && known.services === services) return known;
  const route = new Route(services, path.value);
  path.memo = route;
  return route;
}

/** Whether a content type is gRPC's; "application/grpc-web" is another protocol. */
function isGrpcType(type: string): boolean {
  if (type === GRPC) return true;
  if (!type.startsWith(GRPC)) return false;
  const next = type.charAt(GRPC.length);
  return next === "+" || next === ";";
}

/**
 * Responds with a status only. Its text is cut if a client could have it send far more bytes than
 * the request had.
 */
function refuse(
  connection: Http2Connection,
  stream: Http2Stream,
  status: Status,
  httpStatus = 200,
  acceptEncoding?: string,
): void {
  const message = status.message.slice(0, MAX_REFUSAL_CHARS);
  connection.sender.headers(
    stream,
    trailersOnly({ code: status.code, message }, httpStatus, acceptEncoding),
    true,
  );
}
