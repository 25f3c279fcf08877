/** Adapters that pass HTTP/1.1 and HTTP/2 requests to one handler. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { HttpHandler, HttpRequest, HttpResponse } from "../src/http.ts";
import type { Logger } from "../src/logger.ts";

/** The sender of a request. */
export interface HttpPeer {
  readonly peerAddress: string;
  readonly peerCommonName: string | undefined;
}

/** The dependencies of the adapters. */
export interface HttpContext {
  readonly handler: HttpHandler;
  readonly maxBodyBytes: number;
  readonly logger: Logger;
}

const TOO_LARGE: HttpResponse = {
  status: 413,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body: "request body too large\n",
};

function requestOf(
  method: string,
  target: string,
  headers: ReadonlyMap<string, string>,
  body: Uint8Array,
  peer: HttpPeer,
): HttpRequest {
  const mark = target.indexOf("?");
  return {
    method,
    path: mark === -1 ? target : target.slice(0, mark),
    query: mark === -1 ? "" : target.slice(mark + 1),
    headers,
    body,
    peerAddress: peer.peerAddress,
    peerCommonName: peer.peerCommonName,
  };
}

function headerMap(headers: NodeJS.Dict<string | string[]>): Map<string, string> {
  const map = new Map<string, string>();
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined) continue;
    if (name.charAt(0) !== ":") map.set(name, Array.isArray(value) ? value.join(", ") : value);
    else if (name === ":authority" && !map.has("host")) map.set("host", String(value));
  }
  return map;
}

/** The handler's response; status 500 if the handler fails. */
async function answer(context: HttpContext, request: HttpRequest): Promise<HttpResponse> {
  try {
    return await context.handler(request);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    context.logger.warn("failed to handle HTTP request", {
      method: request.method,
      path: request.path,
      error: reason,
    });
    return {
      status: 500,
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: "internal server error\n",
    };
  }
}

/**
 * The body, or undefined if it exceeds `maxBytes`. Rejects if the request is aborted.
 */
function readBody(
  source: IncomingMessage | ServerHttp2Stream,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    source.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else {
        chunks.length = 0;
        resolve(undefined);
      }
    });
    source.on("end", () => resolve(Buffer.concat(chunks)));
    source.on("error", reject);
    source.on("close", () => reject(new Error("the request was aborted")));
  });
}

/**
 * Handles an HTTP/1.1 request. With `last` the connection is closed after it.
 */
export async function serveHttp1(
  context: HttpContext,
  peer: HttpPeer,
  request: IncomingMessage,
  response: ServerResponse,
  last: boolean,
): Promise<void> {
  response.on("error", () => {});
  let reply: HttpResponse;
  let close = last;
  try {
    const body = await readBody(request, context.maxBodyBytes);
    if (body === undefined) {
      reply = TOO_LARGE;
      close = true;
    } else
      reply = await answer(
        context,
        requestOf(
          request.method ?? "GET",
          request.url ?? "/",
          headerMap(request.headers),
          body,
          peer,
        ),
      );
  } catch {
    response.destroy();
    return;
  }
  const bytes = typeof reply.body === "string" ? Buffer.from(reply.body) : reply.body;
  if (response.destroyed) return;
  const length = hasBody(reply.status) ? { "content-length": bytes.length } : {};
  response.writeHead(reply.status, {
    ...length,
    ...reply.headers,
    ...(close ? { connection: "close" } : {}),
  });
  response.end(hasBody(reply.status) ? bytes : undefined);
}

/**
 * Handles an HTTP/2 request that is not gRPC. Never rejects. The request's body may remain partly
 * unread.
 */
export async function serveHttp2(
  context: HttpContext,
  peer: HttpPeer,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders & { ":method"?: string | undefined; ":path"?: string | undefined },
): Promise<void> {
  let reply: HttpResponse;
  try {
    const body = await readBody(stream, context.maxBodyBytes);
    const request = (bytes: Uint8Array) =>
      requestOf(
        headers[":method"] ?? "GET",
        headers[":path"] ?? "/",
        headerMap(headers),
        bytes,
        peer,
      );
    reply = body === undefined ? TOO_LARGE : await answer(context, request(body));
  } catch {
    stream.close();
    return;
  }
  if (stream.destroyed || stream.closed) return;
  const bytes = typeof reply.body === "string" ? Buffer.from(reply.body) : reply.body;
  const withBody = hasBody(reply.status) && headers[":method"] !== "HEAD";
  const length = hasBody(reply.status) ? { "content-length": bytes.length } : {};
  stream.respond(
    { ":status": reply.status, ...length, ...reply.headers },
    { endStream: !withBody },
  );
  if (withBody) stream.end(bytes);
}

function hasBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 205 && status !== 304;
}
