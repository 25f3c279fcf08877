/**
 * Requests, byte by byte: clients of libraries refuse to send what a stranger sends. HTTP/1.1 as
 * text; HTTP/2 with literal header fields. A connection is used again for as long as the server and
 * the last request leave it whole.
 */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { http2, readU32BE } from "@quorate/proto";

/** A request; texts are latin1. */
export interface RawRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

export interface Where {
  readonly port: number;
  readonly tls: boolean;
}

export type Protocol = "http/1.1" | "h2";

/** A request that is under way: its status (0 where none came), and how to give it up. */
export interface Underway {
  readonly ended: Promise<number>;
  giveUp(): void;
}

/** One connection with one request at a time. */
interface Speaker {
  /** @param done called once, with the status */
  ask(request: RawRequest, done: (status: number) => void): void;
  /** What the server has sent; the promise of `ask` is kept from here. */
  take(chunk: Buffer): void;
  /** The status so far. */
  readonly status: number;
  /** False after a request that may have left bytes behind. */
  readonly isWhole: boolean;
}

/** Requests of one connection; a server may count what a connection has done. */
const REQUESTS_A_CONNECTION = 200;

/** Connections to a port, by one protocol. */
export class Connections {
  readonly #where: Where;
  readonly #protocol: Protocol;
  readonly #free: Connection[] = [];
  #session: Buffer | undefined;

  constructor(where: Where, protocol: Protocol) {
    this.#where = where;
    this.#protocol = protocol;
  }

  send(request: RawRequest): Underway {
    let connection = this.#free.pop();
    while (connection?.isOver) connection = this.#free.pop();
    connection ??= new Connection(this.#open(), this.#protocol);
    const ended = connection.ask(request).then((status) => {
      if (connection.mayGoOn) this.#free.push(connection);
      else connection.end();
      return status;
    });
    return { ended, giveUp: () => connection.end() };
  }

  close(): void {
    for (const one of this.#free.splice(0)) one.end();
  }

  #open(): Socket {
    const { port, tls } = this.#where;
    if (!tls) return connectTcp({ port, host: "127.0.0.1", noDelay: true });
    const socket: TLSSocket = connectTls({
      port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      ALPNProtocols: [this.#protocol],
      ...(this.#session === undefined ? {} : { session: this.#session }),
    });
    // A full handshake would cost the server more than most requests do.
    socket.on("session", (session) => {
      this.#session = session;
    });
    return socket;
  }
}

class Connection {
  isOver = false;
  #requests = 0;
  readonly #socket: Socket;
  readonly #speaker: Speaker;
  #finish: ((status: number) => void) | undefined;

  constructor(socket: Socket, protocol: Protocol) {
    this.#socket = socket;
    this.#speaker = protocol === "h2" ? new Http2(socket) : new Http1(socket);
    socket.on("data", (chunk: Buffer) => this.#speaker.take(chunk));
    socket.on("error", () => this.end());
    socket.on("close", () => this.end());
  }

  get mayGoOn(): boolean {
    return !this.isOver && this.#speaker.isWhole && this.#requests < REQUESTS_A_CONNECTION;
  }

  ask(request: RawRequest): Promise<number> {
    this.#requests++;
    return new Promise((resolve) => {
      this.#finish = resolve;
      this.#speaker.ask(request, (status) => this.#over(status));
    });
  }

  end(): void {
    this.isOver = true;
    this.#socket.destroy();
    this.#over(this.#speaker.status);
  }

  #over(status: number): void {
    const finish = this.#finish;
    this.#finish = undefined;
    finish?.(status);
  }
}

/** Headers that say where a message ends, or that the connection is another one from now on. */
const FRAMING = /^(?:connection|content-length|transfer-encoding|expect|upgrade)$/i;
const LAST_CHUNK = "\r\n0\r\n\r\n";

class Http1 implements Speaker {
  status = 0;
  isWhole = true;
  readonly #socket: Socket;
  #done: (status: number) => void = () => {};
  #isHead = false;
  #head = "";
  #isInBody = false;
  /** Bytes of the body that are to come; by chunks or to the end of the connection if negative. */
  #left = 0;
  #isChunked = false;
  #tail = "";

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  ask({ method, path, headers, body }: RawRequest, done: (status: number) => void): void {
    this.#done = done;
    this.status = 0;
    this.#head = "";
    this.#isInBody = false;
    this.#isHead = method === "HEAD";
    const framing = headers.filter(([name]) => FRAMING.test(name));
    const isPlain = framing.every(([name, value]) =>
      name === "content-length" ? value === String(body.length) : value === "chunked",
    );
    if (!isPlain || !/^[A-Z]+$/.test(method)) this.isWhole = false;
    const lines = [
      `${method} ${path} HTTP/1.1`,
      ...headers.map(([name, value]) => `${name}: ${value}`),
    ];
    this.#socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
    if (body.length > 0) this.#socket.write(body);
  }

  take(chunk: Buffer): void {
    let text = chunk.toString("latin1");
    while (!this.#isInBody) {
      this.#head += text;
      const end = this.#head.indexOf("\r\n\r\n");
      if (end < 0) return;
      text = this.#head.slice(end + 4);
      const head = this.#head.slice(0, end + 2);
      this.#head = "";
      this.status = Number(head.slice(9, 12));
      if (this.status === 100) continue;
      this.#isInBody = true;
      if (this.status < 200 || /\r\nconnection: close\r/i.test(head)) this.isWhole = false;
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      this.#isChunked = /\r\ntransfer-encoding: chunked/i.test(head);
      this.#tail = "\r\n";
      this.#left = length === undefined ? -1 : Number(length);
      if (this.#isHead || this.status === 204 || this.status === 304) this.#left = 0;
      if (this.#left === 0) this.#isChunked = false;
    }
    if (this.#isChunked) {
      this.#tail = (this.#tail + text).slice(-LAST_CHUNK.length);
      if (this.#tail === LAST_CHUNK) this.#over();
      return;
    }
    if (this.#left < 0) return;
    this.#left -= text.length;
    if (this.#left < 0) this.isWhole = false;
    if (this.#left <= 0) this.#over();
  }

  #over(): void {
    this.#isInBody = false;
    this.#done(this.status);
  }
}

const {
  DEFAULT_MAX_FRAME_BYTES: FRAME_BYTES,
  DEFAULT_WINDOW_BYTES,
  Flag,
  FrameType,
  frame,
  MAX_WINDOW_BYTES,
  Setting,
} = http2;

/** Header fields that HTTP/2 does not have. */
const OF_HTTP1 = new Set(["connection", "host", "transfer-encoding", "upgrade", "keep-alive"]);

/** Of the static table of HPACK: the statuses that are one byte. */
const INDEXED_STATUS: Readonly<Record<number, number>> = {
  136: 200,
  137: 204,
  138: 206,
  139: 304,
  140: 400,
  141: 404,
  142: 500,
};

class Http2 implements Speaker {
  status = 0;
  isWhole = true;
  readonly #socket: Socket;
  #done: (status: number) => void = () => {};
  #stream = -1;
  #body: Buffer = Buffer.alloc(0);
  #sent = 0;
  #streamWindow = 0;
  #window = DEFAULT_WINDOW_BYTES;
  #initialWindow = DEFAULT_WINDOW_BYTES;
  readonly #splitter: http2.FrameSplitter;

  constructor(socket: Socket) {
    this.#socket = socket;
    // A window of 2^31 - 1 for what comes.
    socket.write(
      Buffer.concat([
        Buffer.from(http2.PREFACE),
        http2.settingsFrame([Setting.InitialWindowSize, MAX_WINDOW_BYTES]),
        http2.windowUpdateFrame(0, MAX_WINDOW_BYTES - DEFAULT_WINDOW_BYTES),
      ]),
    );
    this.#splitter = new http2.FrameSplitter({
      frame: (bytes, start, length, type, flags, stream) => {
        this.#frame(type, flags, stream, bytes.subarray(start, start + length));
        return true;
      },
      frameTooLong: (length) => {
        throw new Error(`a frame of ${length} bytes`);
      },
    });
  }

  ask(request: RawRequest, done: (status: number) => void): void {
    const { method, path, headers, body } = request;
    this.#done = done;
    this.status = 0;
    this.#stream += 2;
    const host = headers.find(([name]) => name.toLowerCase() === "host")?.[1] ?? "127.0.0.1";
    const fields: [string, string][] = [
      [":method", method],
      [":scheme", "http"],
      [":authority", host],
      [":path", path],
    ];
    for (const [name, value] of headers) {
      const lower = name.toLowerCase();
      // Each by itself would be refused; with a text of a stranger's they are sent as they are.
      if (!OF_HTTP1.has(lower) || value.length > 200) fields.push([lower, value]);
    }
    const block = http2.encodePlainFields(fields);
    const parts: Uint8Array[] = [];
    for (let at = 0; at === 0 || at < block.length; at += FRAME_BYTES) {
      const isLast = at + FRAME_BYTES >= block.length;
      const flags =
        (isLast ? Flag.EndHeaders : 0) | (at === 0 && body.length === 0 ? Flag.EndStream : 0);
      const payload = block.subarray(at, at + FRAME_BYTES);
      parts.push(
        frame(at === 0 ? FrameType.Headers : FrameType.Continuation, flags, this.#stream, payload),
      );
    }
    this.#socket.write(Buffer.concat(parts));
    this.#body = body;
    this.#sent = 0;
    this.#streamWindow = this.#initialWindow;
    this.#pour();
  }

  #pour(): void {
    while (this.#sent < this.#body.length) {
      const left = this.#body.length - this.#sent;
      const bytes = Math.min(FRAME_BYTES, left, this.#streamWindow, this.#window);
      if (bytes <= 0) return;
      const payload = this.#body.subarray(this.#sent, this.#sent + bytes);
      this.#sent += bytes;
      this.#streamWindow -= bytes;
      this.#window -= bytes;
      const flags = this.#sent === this.#body.length ? Flag.EndStream : 0;
      this.#socket.write(frame(FrameType.Data, flags, this.#stream, payload));
    }
  }

  take(chunk: Buffer): void {
    this.#splitter.push(chunk, 0);
  }

  #frame(type: number, flags: number, stream: number, payload: Uint8Array): void {
    const isOurs = stream === this.#stream;
    if (type === FrameType.Settings && (flags & Flag.Ack) === 0) {
      for (let at = 0; at + 6 <= payload.length; at += 6) {
        if (((payload[at] << 8) | payload[at + 1]) !== Setting.InitialWindowSize) continue;
        const initial = readU32BE(payload, at + 2);
        this.#streamWindow += initial - this.#initialWindow;
        this.#initialWindow = initial;
      }
      this.#socket.write(frame(FrameType.Settings, Flag.Ack, 0));
      this.#pour();
    } else if (type === FrameType.WindowUpdate && payload.length === 4) {
      const more = readU32BE(payload, 0);
      if (stream === 0) this.#window = Math.min(MAX_WINDOW_BYTES, this.#window + more);
      else if (isOurs) this.#streamWindow += more;
      this.#pour();
    } else if (type === FrameType.Ping && (flags & Flag.Ack) === 0)
      this.#socket.write(frame(FrameType.Ping, Flag.Ack, 0, payload));
    else if (type === FrameType.Headers && isOurs && this.status === 0)
      this.status = INDEXED_STATUS[payload[0]] ?? 1;
    if (type === FrameType.GoAway) this.isWhole = false;
    const isLast = type === FrameType.Data || type === FrameType.Headers;
    const isOver =
      isOurs && (type === FrameType.RstStream || (isLast && (flags & Flag.EndStream) !== 0));
    if (!isOver && type !== FrameType.GoAway) return;
    // What was not sent is not sent any more.
    if (this.#sent < this.#body.length) this.isWhole = false;
    this.#body = Buffer.alloc(0);
    this.#done(this.status);
  }
}
