/**
 * One HTTP/2 connection that carries gRPC calls, with as little work a call as can be: bytes from
 * templates, no header decoding, all requests of a turn in one write.
 *
 * A unary call counts as answered when a message and the end of its stream arrived; a server that
 * refuses a call ends the stream without a message, which counts as failed. A stream hands on each
 * message; its end is an error.
 */
import * as net from "node:net";
import * as tls from "node:tls";
import { concat, fromLatin1, http2, readU32BE } from "@quorate/proto";
import { constantFields, FieldEncoder, type FieldList, Indexing } from "@quorate/rpc";
import type { ClientIdentity } from "../scripts/cluster/health.ts";

const { Flag, FRAME_HEADER_BYTES, FrameType, frame, putFrameHeader, Setting, windowUpdateFrame } =
  http2;
const grpcPrefixBytes = 5;
/** The windows are large, so that updates are rare. */
const streamWindowBytes = 64 * 1024 * 1024;
const connectionWindowBytes = 256 * 1024 * 1024;

/** What a client says first. */
function preface(): Uint8Array {
  return concat([
    fromLatin1(http2.PREFACE),
    http2.settingsFrame([Setting.EnablePush, 0], [Setting.InitialWindowSize, streamWindowBytes]),
    windowUpdateFrame(0, connectionWindowBytes - http2.DEFAULT_WINDOW_BYTES),
  ]);
}

/** The fields of each request to a path; the second time, most are a byte each. */
function requestFields(
  path: string,
  authority: string,
  scheme: "http" | "https",
  more: ConnectionOptions["headers"] = [],
): FieldList {
  const indexing = Indexing.Add;
  return constantFields(
    { name: ":method", value: "POST" },
    { name: ":scheme", value: scheme },
    { name: ":path", value: path, indexing },
    { name: ":authority", value: authority, indexing },
    { name: "content-type", value: "application/grpc", indexing },
    { name: "te", value: "trailers", indexing },
    { name: "user-agent", value: "quorate-bench/1", indexing },
    ...more.map(([name, value]) => ({ name, value, indexing })),
  );
}

/** A request that serves for many: `patch` bytes overwrite the message at each of `patchAt`. */
export interface Template {
  /** The place of the method's path in the connection's list. */
  readonly path: number;
  readonly message: Uint8Array;
  readonly patchAt: readonly number[];
}

export interface ConnectionOptions {
  readonly url: string;
  /** The paths of the methods that will be called. */
  readonly paths: readonly string[];
  readonly identity: ClientIdentity;
  /** Fields of each request beside gRPC's own, such as a token. */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  /**
   * Called for each finished unary call: the caller's slot, whether a message came, its size, and,
   * if `keepsMessages`, the message.
   */
  readonly done: (
    slot: number,
    ok: boolean,
    sizeBytes: number,
    message: Buffer | undefined,
  ) => void;
  /** Called for each message of a stream; valid only during the call back. */
  readonly streamed?: ((slot: number, message: Uint8Array) => void) | undefined;
  /** Hears of the end of the connection, or of a stream. */
  readonly failed: (error: Error) => void;
  readonly keepsMessages?: boolean | undefined;
}

const readBufferBytes = 256 * 1024;
const slabBytes = 256 * 1024;
const noPatch = Buffer.alloc(0);

/** An open call. */
interface Call {
  readonly slot: number;
  readonly isStream: boolean;
  receivedBytes: number;
  /** The first byte of the answer, 0 if it is not compressed; -1 before it came. */
  firstByte: number;
  /** What is kept of the answer, or of a stream's message that came in part. */
  pieces: Buffer[];
  /** Bytes of a stream that the peer's window was not given back yet. */
  unreturnedBytes: number;
}

export class Connection {
  readonly #socket: net.Socket;
  readonly #splitter: http2.FrameSplitter;
  readonly #encoder = new FieldEncoder();
  /** By the places of the paths. */
  readonly #heads: readonly FieldList[];
  readonly #options: ConnectionOptions;
  #closed = false;
  #nextStream = 1;
  readonly #calls = new Map<number, Call>();
  #receivedBytes = 0;
  #sendWindowBytes = http2.DEFAULT_WINDOW_BYTES;
  #slab = Buffer.allocUnsafeSlow(slabBytes);
  #slabStart = 0;
  #slabEnd = 0;

  /** Resolves when the connection stands. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const { hostname, port, host, protocol } = new URL(options.url);
    const scheme = protocol === "https:" ? "https" : "http";
    let connection: Connection | undefined;
    const socket = await new Promise<net.Socket>((resolve, reject) => {
      if (scheme === "https") {
        const secure = tls.connect(
          { host: hostname, port: Number(port), ALPNProtocols: ["h2"], ...options.identity },
          () => resolve(secure),
        );
        secure.on("data", (bytes: Buffer) => connection!.#receive(bytes));
        secure.once("error", reject);
      } else {
        const onread = {
          buffer: Buffer.allocUnsafeSlow(readBufferBytes),
          callback: (count: number, buffer: Uint8Array): boolean => {
            connection!.#receive((buffer as Buffer).subarray(0, count));
            return true;
          },
        };
        const plain = net.connect(
          { host: hostname, port: Number(port), noDelay: true, onread },
          () => resolve(plain),
        );
        plain.once("error", reject);
      }
    });
    const heads = options.paths.map((path) => requestFields(path, host, scheme, options.headers));
    connection = new Connection(socket, heads, options);
    socket.on("error", (error) => connection.#fail(error));
    socket.on("close", () => connection.#fail(new Error(`connection to ${host} closed`)));
    socket.setNoDelay(true);
    socket.write(preface());
    return connection;
  }

  private constructor(socket: net.Socket, heads: readonly FieldList[], options: ConnectionOptions) {
    this.#socket = socket;
    this.#heads = heads;
    this.#options = options;
    this.#splitter = new http2.FrameSplitter({
      frame: (bytes, start, length, type, flags, stream) => {
        this.#frame(bytes, start, start + length, type, flags, stream);
        return true;
      },
      frameTooLong: (length) => this.#fail(new Error(`a frame of ${length} bytes`)),
    });
  }

  /** Appends a unary call to this turn's write, which `flush` sends. */
  call(slot: number, template: Template, patch: Uint8Array = noPatch): void {
    const stream = this.#open(slot, template.path, false, template.message.length);
    this.#data(stream, template.message, patch, template.patchAt, Flag.EndStream);
  }

  /** Opens a stream; returns its id for `send`. */
  openStream(slot: number, path: number): number {
    return this.#open(slot, path, true, 0);
  }

  /** Appends a message of an open stream to this turn's write. */
  send(stream: number, message: Uint8Array): void {
    this.#reserve(FRAME_HEADER_BYTES + grpcPrefixBytes + message.length);
    this.#data(stream, message, noPatch, [], 0);
  }

  /** Sends what was gathered. */
  flush(): void {
    if (this.#slabEnd === this.#slabStart) return;
    this.#socket.write(this.#slab.subarray(this.#slabStart, this.#slabEnd));
    this.#slabStart = this.#slabEnd;
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.failed(error);
  }

  #open(slot: number, path: number, isStream: boolean, messageBytes: number): number {
    const block = this.#encoder.encode(this.#heads[path]);
    this.#reserve(2 * FRAME_HEADER_BYTES + block.length + grpcPrefixBytes + messageBytes);
    const stream = this.#nextStream;
    this.#nextStream += 2;
    const at = this.#slabEnd;
    putFrameHeader(this.#slab, at, block.length, FrameType.Headers, Flag.EndHeaders, stream);
    this.#slab.set(block, at + FRAME_HEADER_BYTES);
    this.#slabEnd = at + FRAME_HEADER_BYTES + block.length;
    this.#calls.set(stream, {
      slot,
      isStream,
      receivedBytes: 0,
      firstByte: -1,
      pieces: [],
      unreturnedBytes: 0,
    });
    return stream;
  }

  #reserve(bytes: number): void {
    if (this.#slabEnd + bytes <= slabBytes) return;
    this.flush();
    this.#slab = Buffer.allocUnsafeSlow(slabBytes);
    this.#slabStart = this.#slabEnd = 0;
  }

  #data(
    stream: number,
    message: Uint8Array,
    patch: Uint8Array,
    patchAt: readonly number[],
    flags: number,
  ): void {
    const slab = this.#slab;
    const bodyBytes = grpcPrefixBytes + message.length;
    putFrameHeader(slab, this.#slabEnd, bodyBytes, FrameType.Data, flags, stream);
    const at = this.#slabEnd + FRAME_HEADER_BYTES;
    slab[at] = 0;
    slab.writeUInt32BE(message.length, at + 1);
    slab.set(message, at + grpcPrefixBytes);
    for (let i = 0; i < patchAt.length; i++) slab.set(patch, at + grpcPrefixBytes + patchAt[i]);
    this.#slabEnd = at + bodyBytes;
    this.#sendWindowBytes -= bodyBytes;
    if (this.#sendWindowBytes < 0)
      throw new Error("the peer's window is used up: fewer clients a connection, please");
  }

  #receive(chunk: Buffer): void {
    // The chunk's memory is used again for the next read: the splitter copies what is not whole.
    this.#splitter.push(chunk, 0);
    if (this.#receivedBytes > connectionWindowBytes / 4) {
      this.#socket.write(windowUpdateFrame(0, this.#receivedBytes));
      this.#receivedBytes = 0;
    }
    this.flush();
  }

  #frame(
    bytes: Uint8Array,
    payload: number,
    end: number,
    type: number,
    flags: number,
    stream: number,
  ): void {
    if (type === FrameType.Data) {
      this.#receivedBytes += end - payload;
      if (flags & Flag.Padded) throw new Error("padded frames are not read");
      const call = this.#calls.get(stream);
      if (call === undefined) return;
      const isLast = (flags & Flag.EndStream) !== 0;
      if (call.isStream) this.#streamed(stream, call, bytes.subarray(payload, end));
      else if (end > payload) {
        if (call.firstByte < 0) call.firstByte = bytes[payload];
        call.receivedBytes += end - payload;
        if (this.#options.keepsMessages)
          call.pieces.push(Buffer.from(bytes.subarray(payload, end)));
      }
      if (isLast) this.#finish(stream);
    } else if (type === FrameType.Headers) {
      if (flags & Flag.EndStream) this.#finish(stream);
    } else if (type === FrameType.Settings) {
      if (!(flags & Flag.Ack)) this.#socket.write(frame(FrameType.Settings, Flag.Ack, 0));
    } else if (type === FrameType.Ping) {
      if (!(flags & Flag.Ack))
        this.#socket.write(frame(FrameType.Ping, Flag.Ack, 0, bytes.subarray(payload, end)));
    } else if (type === FrameType.WindowUpdate) {
      if (stream === 0) this.#sendWindowBytes += readU32BE(bytes, payload) & http2.MAX_WINDOW_BYTES;
    } else if (type === FrameType.RstStream) {
      const call = this.#calls.get(stream);
      if (call !== undefined) call.firstByte = -1;
      this.#finish(stream);
    } else if (type === FrameType.GoAway) {
      this.#fail(new Error(`the server says goodbye, error ${readU32BE(bytes, payload + 4)}`));
    }
  }

  /** Hands on the whole messages in what a stream has brought. */
  #streamed(stream: number, call: Call, chunk: Uint8Array): void {
    call.unreturnedBytes += chunk.length;
    if (call.unreturnedBytes > streamWindowBytes / 4) {
      this.#socket.write(windowUpdateFrame(stream, call.unreturnedBytes));
      call.unreturnedBytes = 0;
    }
    const before = call.pieces[0];
    const bytes = before === undefined ? chunk : Buffer.concat([before, chunk]);
    let at = 0;
    while (bytes.length - at >= grpcPrefixBytes) {
      const end = at + grpcPrefixBytes + readU32BE(bytes, at + 1);
      if (end > bytes.length) break;
      this.#options.streamed?.(call.slot, bytes.subarray(at + grpcPrefixBytes, end));
      at = end;
    }
    call.pieces = at === bytes.length ? [] : [Buffer.from(bytes.subarray(at))];
  }

  #finish(stream: number): void {
    const call = this.#calls.get(stream);
    if (call === undefined) return;
    this.#calls.delete(stream);
    if (call.isStream) {
      this.#fail(new Error("the server ended a stream"));
      return;
    }
    const ok = call.firstByte === 0 && call.receivedBytes >= grpcPrefixBytes;
    const sizeBytes = Math.max(0, call.receivedBytes - grpcPrefixBytes);
    const message =
      this.#options.keepsMessages && ok
        ? Buffer.concat(call.pieces).subarray(grpcPrefixBytes)
        : undefined;
    this.#options.done(call.slot, ok, sizeBytes, message);
  }
}
