/** A plain HTTP request on an HTTP/2 stream: collects its body and calls the handler. */
import { concat, EMPTY, fromUtf8 } from "@quorate/proto";
import { NameId } from "../hpack/header-field.ts";
import type { Http2Connection } from "../http2/connection.ts";
import { ErrorCode } from "../http2/constants.ts";
import type { RequestHead } from "../http2/request-head.ts";
import type { Http2Stream, StreamConsumer } from "../http2/stream.ts";
import type { HttpRequest, HttpResponse } from "../service.ts";
import type { GrpcShared } from "./shared.ts";

const TEXT = { "content-type": "text/plain; charset=utf-8" };
const BODY_TOO_LARGE: HttpResponse = {
  status: 413,
  headers: TEXT,
  body: "request body too large\n",
};
const HEADERS_TOO_LARGE: HttpResponse = {
  status: 431,
  headers: TEXT,
  body: "request headers too large\n",
};
const TOO_BUSY: HttpResponse = {
  status: 503,
  headers: TEXT,
  body: "requests being received hold too much memory\n",
};
const FAILED: HttpResponse = { status: 500, headers: TEXT, body: "internal server error\n" };

/**
 * Connection-specific fields of HTTP/1.1, which a response must not have (RFC 9113 section 8.2.2).
 */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

export class HttpCall implements StreamConsumer {
  readonly #shared: GrpcShared;
  readonly #connection: Http2Connection;
  readonly #stream: Http2Stream;
  #chunks: Uint8Array[] = [];
  #bodyBytes = 0;
  #heldBytes = 0;
  #responded = false;

  constructor(
    shared: GrpcShared,
    connection: Http2Connection,
    stream: Http2Stream,
    bodyEnded: boolean,
  ) {
    this.#shared = shared;
    this.#connection = connection;
    this.#stream = stream;
    stream.consumer = this;
    if (bodyEnded) this.ended();
  }

  data(bytes: Uint8Array, start: number, end: number): void {
    if (this.#responded) return;
    const size = end - start;
    this.#bodyBytes += size;
    if (this.#bodyBytes > this.#shared.limits.maxHttpBodyBytes) this.#respond(BODY_TOO_LARGE);
    else if (!this.#connection.held.take(size)) {
      this.#connection.counters.heldBytesRefusals++;
      this.#respond(TOO_BUSY);
    } else {
      this.#heldBytes += size;
      this.#chunks.push(bytes.subarray(start, end));
      this.#connection.credit(this.#stream, size);
    }
  }

  ended(): void {
    if (this.#responded) return;
    const body = this.#chunks.length === 0 ? EMPTY : concat(this.#chunks);
    this.#chunks = [];
    const request = requestOf(this.#stream.head, body, this.#connection);
    let response: HttpResponse | Promise<HttpResponse>;
    try {
      response = this.#shared.http(request);
    } catch (error) {
      this.#failed(request, error);
      return;
    }
    if (!(response instanceof Promise)) {
      this.#respond(response);
      return;
    }
    response.then(
      (response) => this.#respond(response),
      (error) => this.#failed(request, error),
    );
  }

  aborted(): void {
    this.#release();
  }

  drained(): void {}

  #failed(request: HttpRequest, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#shared.logger.warn("failed to handle HTTP request", {
      method: request.method,
      path: request.path,
      error: reason,
    });
    this.#respond(FAILED);
  }

  #respond(response: HttpResponse): void {
    this.#release();
    if (this.#responded) return;
    this.#responded = true;
    sendHttp(this.#connection, this.#stream, response);
  }

  #release(): void {
    this.#connection.held.give(this.#heldBytes);
    this.#heldBytes = 0;
  }
}

/** Responds to a request whose headers are too long. */
export function refuseHttpHeaders(connection: Http2Connection, stream: Http2Stream): void {
  sendHttp(connection, stream, HEADERS_TOO_LARGE);
}

function sendHttp(connection: Http2Connection, stream: Http2Stream, response: HttpResponse): void {
  if (stream.closed) return;
  const { sender } = connection;
  const body = typeof response.body === "string" ? fromUtf8(response.body) : response.body;
  const mayHaveBody =
    response.status >= 200 &&
    response.status !== 204 &&
    response.status !== 205 &&
    response.status !== 304;
  const fields = [{ name: ":status", value: String(response.status) }];
  const names = Object.keys(response.headers);
  if (mayHaveBody && !names.some((name) => name.toLowerCase() === "content-length")) {
    fields.push({ name: "content-length", value: String(body.length) });
  }
  for (const name of names) {
    const lower = name.toLowerCase();
    if (!CONNECTION_FIELDS.has(lower)) fields.push({ name: lower, value: response.headers[name] });
  }
  const withBody = mayHaveBody && stream.head.method !== "HEAD" && body.length > 0;
  sender.headers(stream, { fields, constant: false }, !withBody);
  if (withBody && !sender.data(stream, [body], body.length, "plain")) {
    connection.counters.pendingBytesRefusals++;
    connection.reset(stream, ErrorCode.EnhanceYourCalm);
  }
  connection.touched();
}

function requestOf(head: RequestHead, body: Uint8Array, connection: Http2Connection): HttpRequest {
  const target = head.path.value;
  const mark = target.indexOf("?");
  return {
    method: head.method,
    path: mark === -1 ? target : target.slice(0, mark),
    query: mark === -1 ? "" : target.slice(mark + 1),
    headers: headerMap(head),
    body,
    peerAddress: connection.peer.peerAddress,
    peerCommonName: connection.peer.peerCommonName,
  };
}

/**
 * The fields by name. Values of one name are joined by commas, cookies by semicolons (RFC 9113
 * section 8.2.3).
 */
function headerMap(head: RequestHead): Map<string, string> {
  const map = new Map<string, string>();
  for (const { name, value, nameId } of head.fields) {
    if (name.startsWith(":")) continue;
    const before = map.get(name);
    map.set(
      name,
      before === undefined ? value : before + (nameId === NameId.Cookie ? "; " : ", ") + value,
    );
  }
  if (head.authority !== undefined && !map.has("host")) map.set("host", head.authority);
  return map;
}
