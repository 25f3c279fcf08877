/**
 * One HTTP/1.1 connection over TLS with one request at a time, as bytes made before: a client that
 * costs little, because it shares the processors with the servers that it measures.
 */
import { connect, type TLSSocket } from "node:tls";
import { TOKEN } from "./servers.ts";

const HEAD_END = Buffer.from("\r\n\r\n");
const NOTHING = Buffer.alloc(0);
/** Longer heads are no heads of these servers. */
const MAX_HEAD_BYTES = 16_384;
/** The end of a chunked body; JSON itself holds no line feeds of this kind. */
const LAST_CHUNK = "0\r\n\r\n";

/** A request of a load. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: string;
}

/** The bytes of a request. @param host of the header Host */
export function requestBytes(host: string, { method, path, body }: Call): Buffer {
  const head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${TOKEN}\r\n`;
  if (body === undefined) return Buffer.from(`${head}\r\n`);
  const type = "content-type: application/json";
  return Buffer.from(`${head}${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

export class LoadConnection {
  readonly #socket: TLSSocket;
  /** The head of a response that came in part. */
  #head: Buffer = NOTHING;
  /** Bytes of the present body that are missing; undefined before its head, -1 if chunked. */
  #missing: number | undefined;
  /** The end of what came of a chunked body. */
  #tail = "";
  #done: (error: Error | undefined) => void = () => {};

  private constructor(socket: TLSSocket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (piece: Buffer) => this.#received(piece));
    socket.on("error", (error) => this.#done(error));
    socket.on("close", () => this.#done(new Error("the server has closed a connection")));
  }

  static open(url: string): Promise<LoadConnection> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const options = { host: hostname, port: Number(port), rejectUnauthorized: false };
      const socket = connect({ ...options, ALPNProtocols: ["http/1.1"] }, () => {
        socket.off("error", reject);
        resolve(new LoadConnection(socket));
      });
      socket.once("error", reject);
    });
  }

  /** Calls `done` when the response has come, with an error where its status is none of 2xx. */
  send(request: Buffer, done: (error: Error | undefined) => void): void {
    this.#done = done;
    this.#socket.write(request);
  }

  close(): void {
    this.#done = () => {};
    this.#socket.destroy();
  }

  #received(piece: Buffer): void {
    let rest = piece;
    if (this.#missing === undefined) {
      const bytes = this.#head.length === 0 ? piece : Buffer.concat([this.#head, piece]);
      const end = bytes.indexOf(HEAD_END);
      this.#head = end < 0 ? bytes : NOTHING;
      if (end < 0) {
        if (bytes.length > MAX_HEAD_BYTES) this.#done(new Error("a response has no head"));
        return;
      }
      this.#begin(bytes.toString("latin1", 0, end));
      rest = bytes.subarray(end + HEAD_END.length);
    }
    if (this.#missing === undefined) return;
    if (this.#missing >= 0) this.#missing -= rest.length;
    else {
      this.#tail = (this.#tail + rest.toString("latin1", Math.max(0, rest.length - 5))).slice(-5);
      if (this.#tail === LAST_CHUNK) this.#missing = 0;
    }
    if (this.#missing !== 0) return;
    this.#missing = undefined;
    this.#done(undefined);
  }

  #begin(head: string): void {
    if (!head.startsWith("HTTP/1.1 2")) {
      this.#done(new Error(head.slice(0, head.indexOf("\r"))));
      return;
    }
    const length = /^content-length: *(\d+)/im.exec(head);
    this.#missing = length === null ? -1 : Number(length[1]);
    this.#tail = "";
  }
}
