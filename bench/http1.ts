/**
 * HTTP/1.1 connections of the load: one request at a time on each, as bytes made before. The load
 * shares its processors with the member that it measures, so a response costs it as little as Node
 * allows: all sockets read into one buffer, and a response is looked at where it arrived.
 */
import { connect, type Socket } from "node:net";

const HEAD_END = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");
/** Any status of success. */
const OK = Buffer.from("HTTP/1.1 2");
/** The status whose response has no body and no length (RFC 9110, section 15.3.5). */
const NO_CONTENT = Buffer.from("HTTP/1.1 204");
const READ_BYTES = 64 * 1024;
/** Every read is over when its callback returns, so one buffer is enough. */
const shared = Buffer.alloc(READ_BYTES);
const DIGIT_0 = 48;
const DIGIT_9 = 57;
const SPACE = 32;
const COLON = 58;
/** The length of "content-length", and its last letters. */
const LENGTH_NAME = "content-length";

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
  /** What has arrived of a response that is not whole. */
  #rest: Buffer | undefined;
  #answered: () => void = () => {};
  /** Called with what arrives in place of the reading of responses: for streams. */
  onData: ((chunk: Buffer) => void) | undefined;

  private constructor(address: string, opened: (self: HttpConnection) => void) {
    const [host, port] = address.split(":");
    const onread = {
      buffer: shared,
      callback: (size: number): boolean => {
        const chunk = shared.subarray(0, size);
        if (this.onData !== undefined) this.onData(chunk);
        else this.#received(chunk);
        return true;
      },
    };
    const socket = connect({ host, port: Number(port), noDelay: true, onread });
    socket.once("connect", () => opened(this));
    this.#socket = socket;
  }

  /** @param failed called with what ends the connection, also before it is open */
  static open(address: string, failed: (error: Error) => void): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const one = new HttpConnection(address, resolve);
      one.#socket.on("error", (error) => {
        reject(error);
        failed(error);
      });
      one.#failed = failed;
    });
  }

  #failed: (error: Error) => void = () => {};

  /** Sends a request; `answered` is called with its response complete. */
  send(request: Buffer, answered: () => void): void {
    this.#answered = answered;
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.destroy();
  }

  #received(chunk: Buffer): void {
    const rest = this.#rest;
    const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
    if (!isWhole(bytes)) {
      this.#rest = Buffer.from(bytes);
      return;
    }
    this.#rest = undefined;
    if (bytes.compare(OK, 0, OK.length, 0, OK.length) === 0) this.#answered();
    else this.#failed(new Error(`not OK: ${bytes.toString("latin1", 0, 300)}`));
  }
}

/** True if the bytes hold a whole response. */
function isWhole(bytes: Buffer): boolean {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return false;
  if (bytes.compare(NO_CONTENT, 0, NO_CONTENT.length, 0, NO_CONTENT.length) === 0) return true;
  const length = lastLength(bytes, end) ?? anyLength(bytes, end);
  if (length !== undefined) return bytes.length >= end + HEAD_END.length + length;
  return bytes.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}

/** The Content-Length of a head whose last field it is, as both programs write it. */
function lastLength(bytes: Buffer, end: number): number | undefined {
  let at = end - 1;
  let length = 0;
  for (let unit = 1; bytes[at] >= DIGIT_0 && bytes[at] <= DIGIT_9; unit *= 10)
    length += (bytes[at--] - DIGIT_0) * unit;
  if (at === end - 1 || bytes[at] !== SPACE || bytes[at - 1] !== COLON) return undefined;
  const nameAt = at - 1 - LENGTH_NAME.length;
  const isLength =
    bytes[nameAt - 1] === 10 && (bytes[nameAt] | 32) === 99 && (bytes[nameAt + 8] | 32) === 108;
  return isLength ? length : undefined;
}

function anyLength(bytes: Buffer, end: number): number | undefined {
  const found = /content-length: *(\d+)/i.exec(bytes.toString("latin1", 0, end));
  return found === null ? undefined : Number(found[1]);
}
