/** HTTP/1.1 connections of the load: one request at a time on each, as bytes made before. */
import { connect, type Socket } from "node:net";

const HEAD_END = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");
const OK = Buffer.from("HTTP/1.1 200");

/** A POST of a JSON body. */
export function post(host: string, path: string, body: string): Buffer {
  const length = Buffer.byteLength(body);
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${length}\r\n\r\n${body}`,
  );
}

/** One keep-alive connection. */
export class HttpConnection {
  readonly #socket: Socket;
  #buffer: Buffer = Buffer.alloc(0);
  #answered: () => void = () => {};
  /** Called with what arrives in place of the reading of responses: for streams. */
  onData: ((chunk: Buffer) => void) | undefined;

  private constructor(socket: Socket, failed: (error: Error) => void) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      try {
        if (this.onData !== undefined) this.onData(chunk);
        else this.#received(chunk);
      } catch (error) {
        failed(error as Error);
      }
    });
    socket.on("error", failed);
  }

  static open(address: string, failed: (error: Error) => void): Promise<HttpConnection> {
    const [host, port] = address.split(":");
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), host);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new HttpConnection(socket, failed));
      });
    });
  }

  /** Sends a request; `answered` is called with its response complete. */
  send(request: Buffer, answered: () => void): void {
    this.#answered = answered;
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.destroy();
  }

  #received(chunk: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
    if (!isWhole(this.#buffer)) return;
    if (this.#buffer.compare(OK, 0, OK.length, 0, OK.length) !== 0)
      throw new Error(`not 200: ${this.#buffer.toString("latin1", 0, 300)}`);
    this.#buffer = Buffer.alloc(0);
    this.#answered();
  }
}

function isWhole(buffer: Buffer): boolean {
  const end = buffer.indexOf(HEAD_END);
  if (end < 0) return false;
  const head = buffer.toString("latin1", 0, end);
  const length = /content-length: *(\d+)/i.exec(head);
  if (length !== null) return buffer.length >= end + HEAD_END.length + Number(length[1]);
  return buffer.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}
