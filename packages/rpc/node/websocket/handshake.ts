/** The opening handshake of a server (RFC 6455 section 4.2). */
import { createHash } from "node:crypto";
import { type HttpExchange, type HttpHead, type HttpResponse, listItems } from "@quorate/host";

/** From section 1.3. */
const KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Whether a request asks for a WebSocket. */
export function asksForWebSocket({ headers }: HttpHead): boolean {
  return listItems((headers.get("upgrade") ?? "").toLowerCase()).includes("websocket");
}

function refusal(status: number, text: string): HttpResponse {
  const headers = {
    "content-type": "text/plain; charset=utf-8",
    "sec-websocket-version": "13",
    "x-content-type-options": "nosniff",
  };
  return { status, headers, body: `${text}\n` };
}

/**
 * The sec-websocket-accept of a good handshake, or the response to another one. Statuses are
 * those of etcd's WebSocket proxy (gorilla/websocket, Upgrader.Upgrade).
 */
function acceptKey(head: HttpHead): string | HttpResponse {
  if (!asksForWebSocket(head)) return refusal(400, "Bad Request");
  if (head.method !== "GET") return refusal(405, "Method Not Allowed");
  if (head.headers.get("sec-websocket-version") !== "13") return refusal(400, "Bad Request");
  const key = head.headers.get("sec-websocket-key") ?? "";
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key)) return refusal(400, "Bad Request");
  return createHash("sha1")
    .update(key + KEY_SUFFIX, "latin1")
    .digest("base64");
}

/**
 * Takes the connection over for WebSocket. Undefined if that is not possible: then the exchange
 * has a response.
 */
export function acceptWebSocket(
  exchange: HttpExchange,
  headers: Readonly<Record<string, string>>,
): ReturnType<HttpExchange["upgrade"]> {
  const accept = acceptKey(exchange.head);
  if (typeof accept !== "string") {
    exchange.respond(accept);
    return undefined;
  }
  const tunnel = exchange.upgrade({ "sec-websocket-accept": accept, ...headers });
  if (tunnel === undefined) exchange.respond(refusal(400, "Bad Request"));
  return tunnel;
}
