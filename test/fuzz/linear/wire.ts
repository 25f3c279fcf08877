/**
 * One request, byte by byte, over a connection of its own: clients of libraries refuse to send what
 * a stranger sends. HTTP/1.1 as text; HTTP/2 with literal header fields.
 */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

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

/** How a request ended. */
export interface Ended {
  /** The status, 0 where none came. */
  readonly status: number;
  /** False where the limit of time came first. */
  readonly isOver: boolean;
}

function open({ port, tls }: Where, protocol: Protocol): Socket {
  if (!tls) return connectTcp({ port, host: "127.0.0.1" });
  return connectTls({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: [protocol],
  });
}

/** A request that is under way: its end, and how to give it up. */
export interface Underway {
  readonly ended: Promise<Ended>;
  giveUp(): void;
}

export function send(where: Where, protocol: Protocol, request: RawRequest): Underway {
  const socket = open(where, protocol);
  let finish!: (ended: Ended) => void;
  const ended = new Promise<Ended>((resolve) => {
    finish = resolve;
  });
  const state = { status: 0 };
  const close = (isOver: boolean): void => {
    finish({ status: state.status, isOver });
    socket.destroy();
  };
  socket.on("error", () => close(true));
  socket.on("close", () => close(true));
  if (protocol === "h2") speakHttp2(socket, request, state, () => close(true));
  else speakHttp1(socket, request, state, () => close(true));
  return { ended, giveUp: () => close(false) };
}

type State = { status: number };

function speakHttp1(socket: Socket, request: RawRequest, state: State, done: () => void): void {
  const { method, path, headers, body } = request;
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (body.length > 0) socket.write(body);
  let received = "";
  let headEnd = -1;
  let bodyBytes = 0;
  let tail = "";
  socket.on("data", (chunk: Buffer) => {
    if (headEnd < 0) {
      received += chunk.toString("latin1");
      headEnd = received.indexOf("\r\n\r\n");
      if (headEnd < 0) return;
      state.status = Number(received.slice(9, 12));
      bodyBytes = received.length - headEnd - 4;
    } else bodyBytes += chunk.length;
    tail = (tail + chunk.toString("latin1")).slice(-5);
    const head = received.slice(0, headEnd);
    if (state.status === 100) {
      received = received.slice(headEnd + 4);
      headEnd = -1;
      return;
    }
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length !== undefined && (bodyBytes >= Number(length) || method === "HEAD")) done();
    if (/\r\ntransfer-encoding: chunked/i.test(head) && tail === "0\r\n\r\n") done();
    if (state.status === 204 || state.status === 304) done();
  });
}

const FRAME = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  window: 8,
  more: 9,
};
const FRAME_BYTES = 16_384;
const END_STREAM = 1;
const END_HEADERS = 4;

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function hpackText(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  const length: number[] = [];
  if (bytes.length < 127) length.push(bytes.length);
  else {
    length.push(127);
    let left = bytes.length - 127;
    for (; left > 127; left >>= 7) length.push((left & 127) | 128);
    length.push(left);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** Header fields that HTTP/2 does not have. */
const OF_HTTP1 = new Set(["connection", "host", "transfer-encoding", "upgrade", "keep-alive"]);

function speakHttp2(socket: Socket, request: RawRequest, state: State, done: () => void): void {
  const { method, path, headers, body } = request;
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
  const block = Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0]), hpackText(name), hpackText(value)]),
  );
  const parts: Buffer[] = [Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")];
  // A window of 2^31 - 1 for what comes.
  parts.push(frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])));
  parts.push(frame(FRAME.window, 0, 0, Buffer.from([0x7f, 0xfe, 0, 0])));
  for (let at = 0; at === 0 || at < block.length; at += FRAME_BYTES) {
    const isLast = at + FRAME_BYTES >= block.length;
    const flags = (isLast ? END_HEADERS : 0) | (at === 0 && body.length === 0 ? END_STREAM : 0);
    const payload = block.subarray(at, at + FRAME_BYTES);
    parts.push(frame(at === 0 ? FRAME.headers : FRAME.more, flags, 1, payload));
  }
  socket.write(Buffer.concat(parts));
  const window = { stream: 65_535, connection: 65_535, initial: 65_535 };
  let sent = 0;
  const pour = (): void => {
    while (sent < body.length) {
      const bytes = Math.min(FRAME_BYTES, body.length - sent, window.stream, window.connection);
      if (bytes <= 0) return;
      const payload = body.subarray(sent, sent + bytes);
      sent += bytes;
      window.stream -= bytes;
      window.connection -= bytes;
      socket.write(frame(FRAME.data, sent === body.length ? END_STREAM : 0, 1, payload));
    }
  };
  pour();
  let input: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    input = input.length === 0 ? chunk : Buffer.concat([input, chunk]);
    while (input.length >= 9) {
      const length = input.readUIntBE(0, 3);
      if (input.length < 9 + length) break;
      const [type, flags, stream] = [input[3], input[4], input.readUInt32BE(5)];
      const payload = input.subarray(9, 9 + length);
      input = input.subarray(9 + length);
      if (type === FRAME.settings && (flags & 1) === 0) {
        for (let at = 0; at + 6 <= payload.length; at += 6) {
          if (payload.readUInt16BE(at) !== 4) continue;
          const initial = payload.readUInt32BE(at + 2);
          window.stream += initial - window.initial;
          window.initial = initial;
        }
        socket.write(frame(FRAME.settings, 1, 0, Buffer.alloc(0)));
        pour();
      } else if (type === FRAME.window && payload.length === 4) {
        if (stream === 0) window.connection += payload.readUInt32BE(0);
        else window.stream += payload.readUInt32BE(0);
        pour();
      } else if (type === FRAME.ping && (flags & 1) === 0) {
        socket.write(frame(FRAME.ping, 1, 0, Buffer.from(payload)));
      } else if (type === FRAME.headers && stream === 1) state.status = 200;
      if (type === FRAME.goaway || (stream === 1 && type === FRAME.reset)) done();
      else if (
        stream === 1 &&
        (type === FRAME.data || type === FRAME.headers) &&
        flags & END_STREAM
      )
        done();
    }
  });
}
