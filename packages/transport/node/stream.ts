/**
 * How a stream of messages begins: as an HTTP/1.1 request on the peer port that asks for an upgrade, with the headers by which members
 * introduce themselves. Once the peer has agreed (status 101), the socket carries frames (src/frames.ts) and nothing else:
 *
 *     dialler  --- GET /raft/stream/KIND, upgrade: quorate-raft -->  acceptor
 *              <-- 101, or a refusal with its text ---------------
 *              --- frames: messages, and empty ones as pings ---->
 *              <-- an empty frame for each ping -------------------
 *
 * Frames on the socket itself cost a tenth of what the streams of node:http2 do, and leave at once instead of in the loop's next turn.
 */
import { type IncomingMessage, request as requestPlain } from "node:http";
import type { Socket } from "node:net";
import { DialError } from "./dial.ts";
import { answerHeaders, requestHeaders, STREAM_PATH } from "./headers.ts";
import type { ResolvedOptions, Shared } from "./options.ts";
import type { Answer } from "./request.ts";

/** The protocol that a connection is asked to change to. */
const UPGRADE = "quorate-raft";
/** More of a refusal's text is not read. */
const MAX_ERROR_BYTES = 1024;

/** Whether a request asks for a stream of messages. */
export function isStreamRequest(request: IncomingMessage): boolean {
  return request.headers.upgrade === UPGRADE && request.url?.startsWith(STREAM_PATH) === true;
}

/** Asks the peer at the other end of `socket` for a stream. Status 101: it has agreed. Rejects with DialError if it does not answer. */
export function requestStream(shared: Shared, socket: Socket, to: bigint, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { ":method": _method, ":path": _path, ...headers } = requestHeaders(shared.options, to, path);
    const request = requestPlain({
      createConnection: () => socket,
      method: "GET",
      path,
      setHost: false,
      headers: { host: "peer", connection: "upgrade", upgrade: UPGRADE, ...headers },
    });
    request.on("upgrade", (response) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: "" }));
    request.on("response", (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        if (text.length < MAX_ERROR_BYTES) text += chunk.toString("utf8", 0, MAX_ERROR_BYTES - text.length);
      });
      response.on("error", () => {});
      response.on("close", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: text.trimEnd() }));
    });
    request.on("error", () => {});
    request.on("close", () => reject(new DialError("failed", "connection closed before the peer answered")));
    request.end();
  });
}

/** Agrees to a stream. */
export function agree(socket: Socket, options: ResolvedOptions): void {
  socket.write(head("101 Switching Protocols", { connection: "upgrade", upgrade: UPGRADE, ...answerHeaders(options) }));
}

/** Turns a request for a stream away, and ends the connection. */
export function refuse(socket: Socket, options: ResolvedOptions, status: number, text: string): void {
  const body = `${text}\n`;
  const headers = { connection: "close", "content-type": "text/plain; charset=utf-8", "content-length": body.length };
  socket.end(head(`${status} Refused`, { ...headers, ...answerHeaders(options) }) + body);
}

function head(status: string, headers: ReturnType<typeof answerHeaders>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\n${lines.join("")}\r\n`;
}
