/**
 * HTTP/2 frame by frame (RFC 9113) over a plain socket, for what good clients never send. Header
 * blocks of answers are not decoded.
 */
import { connect, type Socket } from "node:net";
import { http2 } from "@quorate/proto";

export const { Flag, FrameType, frame } = http2;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const PREFACE = Buffer.from(http2.PREFACE, "latin1");

export const GRPC_HEADERS: Record<string, string> = {
  ":method": "POST",
  ":scheme": "http",
  ":authority": "localhost",
  "content-type": "application/grpc",
  te: "trailers",
};

/** A gRPC message with its prefix. */
export function grpcMessage(bytes: Uint8Array, flag = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

export class FrameClient {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  readonly closed: Promise<void>;
  #buffer: Buffer = Buffer.alloc(0);
  #waiting: {
    readonly test: (frame: Frame) => boolean;
    readonly resolve: (frame: Frame) => void;
  }[] = [];

  constructor(port: number, settings?: Uint8Array) {
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.socket.on("error", () => {});
    this.closed = new Promise((resolve) => this.socket.on("close", () => resolve()));
    this.socket.on("data", (chunk: Buffer) => this.#read(chunk));
    this.socket.write(Buffer.concat([PREFACE, frame(FrameType.Settings, 0, 0, settings)]));
  }

  send(...frames: Uint8Array[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** Opens a stream; the caller says whether more follows. */
  open(
    streamId: number,
    path: string,
    flags: number = Flag.EndHeaders,
    more: Record<string, string> = {},
  ): void {
    this.send(
      frame(
        FrameType.Headers,
        flags,
        streamId,
        http2.encodePlainFields(Object.entries({ ":path": path, ...GRPC_HEADERS, ...more })),
      ),
    );
  }

  /** The first frame that fits, already come or still to come. */
  frame(test: (frame: Frame) => boolean): Promise<Frame> {
    const found = this.frames.find(test);
    return found
      ? Promise.resolve(found)
      : new Promise((resolve) => this.#waiting.push({ test, resolve }));
  }

  /** Waits until the server has dealt with all that was sent before: it answers pings in order. */
  async settled(mark: number): Promise<void> {
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(mark, 4);
    this.send(frame(FrameType.Ping, 0, 0, payload));
    await this.frame(
      (one) => one.type === FrameType.Ping && one.flags === Flag.Ack && one.payload.equals(payload),
    );
  }

  #read(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    while (this.#buffer.length >= 9) {
      const end = 9 + this.#buffer.readUIntBE(0, 3);
      if (this.#buffer.length < end) return;
      const one: Frame = {
        type: this.#buffer[3],
        flags: this.#buffer[4],
        streamId: this.#buffer.readUInt32BE(5),
        payload: Buffer.from(this.#buffer.subarray(9, end)),
      };
      this.#buffer = this.#buffer.subarray(end);
      if (one.type === FrameType.Settings && (one.flags & Flag.Ack) === 0)
        this.send(frame(FrameType.Settings, Flag.Ack, 0));
      this.frames.push(one);
      for (const waiting of this.#waiting.filter(({ test }) => test(one))) waiting.resolve(one);
      this.#waiting = this.#waiting.filter(({ test }) => !test(one));
    }
  }
}
