/**
 * One HTTP/2 connection that carries unary gRPC calls of one method, with as little work a call as can be: bytes from templates, no
 * header decoding, all requests of a turn in one write. A call counts as answered when a message and the end of its stream arrived; a
 * server that refuses a call ends the stream without a message, which counts as failed.
 */
import * as net from "node:net";
import * as tls from "node:tls";
import type { ClientIdentity } from "../scripts/cluster/health.ts";
import {
  connectionWindowBytes,
  flags,
  frameHeaderBytes,
  frameType,
  grpcPrefixBytes,
  type HeaderBlocks,
  headerBlocks,
  pingAck,
  preface,
  settingsAck,
  windowUpdate,
  writeFrameHeader,
} from "./wire.ts";

/** Called for each finished call: the caller's slot, whether a message came, and the message (valid only during the call back). */
export type Done = (slot: number, ok: boolean, message: Buffer | undefined) => void;

const readBufferBytes = 256 * 1024;
const slabBytes = 256 * 1024;
const nothing = Buffer.alloc(0);

export class Connection {
  readonly #socket: net.Socket;
  readonly #blocks: HeaderBlocks;
  readonly #done: Done;
  #fail: (error: Error) => void = () => {};
  #isFirst = true;
  #nextStream = 1;
  /** Open calls: stream id to slot, and the streams that have brought a message. */
  readonly #slots = new Map<number, number>();
  readonly #messages = new Map<number, Buffer>();
  #rest: Buffer = nothing;
  #receivedBytes = 0;
  #sendWindowBytes = 65_535;
  #slab = Buffer.allocUnsafeSlow(slabBytes);
  #slabStart = 0;
  #slabEnd = 0;

  /** Resolves when the connection stands. `failed` hears of its later end. */
  static async open(url: string, path: string, identity: ClientIdentity, done: Done, failed: (error: Error) => void): Promise<Connection> {
    const { hostname, port, host, protocol } = new URL(url);
    const scheme = protocol === "https:" ? "https" : "http";
    let connection: Connection | undefined;
    const socket = await new Promise<net.Socket>((resolve, reject) => {
      if (scheme === "https") {
        const secure = tls.connect({ host: hostname, port: Number(port), ALPNProtocols: ["h2"], ...identity }, () => resolve(secure));
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
        const plain = net.connect({ host: hostname, port: Number(port), noDelay: true, onread }, () => resolve(plain));
        plain.once("error", reject);
      }
    });
    connection = new Connection(socket, headerBlocks(path, host, scheme), done);
    connection.#fail = failed;
    socket.on("error", failed);
    socket.on("close", () => failed(new Error(`connection to ${host} closed`)));
    socket.setNoDelay(true);
    socket.write(preface());
    return connection;
  }

  private constructor(socket: net.Socket, blocks: HeaderBlocks, done: Done) {
    this.#socket = socket;
    this.#blocks = blocks;
    this.#done = done;
  }

  /**
   * Appends a call to this turn's write, which `flush` sends. `patch` overwrites message bytes at `patchAt`, so that one message serves
   * for many keys.
   */
  call(slot: number, message: Uint8Array, patch: Uint8Array, patchAt: number): void {
    const block = this.#isFirst ? this.#blocks.first : this.#blocks.next;
    this.#isFirst = false;
    const bodyBytes = grpcPrefixBytes + message.length;
    const bytes = 2 * frameHeaderBytes + block.length + bodyBytes;
    if (this.#slabEnd + bytes > slabBytes) {
      this.flush();
      this.#slab = Buffer.allocUnsafeSlow(slabBytes);
      this.#slabStart = this.#slabEnd = 0;
    }
    const slab = this.#slab;
    const stream = this.#nextStream;
    this.#nextStream += 2;
    let at = this.#slabEnd;
    writeFrameHeader(slab, at, block.length, frameType.headers, flags.endHeaders, stream);
    slab.set(block, at + frameHeaderBytes);
    at += frameHeaderBytes + block.length;
    writeFrameHeader(slab, at, bodyBytes, frameType.data, flags.endStream, stream);
    at += frameHeaderBytes;
    slab[at] = 0;
    slab.writeUInt32BE(message.length, at + 1);
    slab.set(message, at + grpcPrefixBytes);
    slab.set(patch, at + grpcPrefixBytes + patchAt);
    this.#slabEnd = at + bodyBytes;
    this.#sendWindowBytes -= bodyBytes;
    if (this.#sendWindowBytes < 0) throw new Error("the peer's window is used up: fewer clients a connection, please");
    this.#slots.set(stream, slot);
  }

  /** Sends what `call` has gathered. */
  flush(): void {
    if (this.#slabEnd === this.#slabStart) return;
    this.#socket.write(this.#slab.subarray(this.#slabStart, this.#slabEnd));
    this.#slabStart = this.#slabEnd;
  }

  close(): void {
    this.#fail = () => {};
    this.#socket.removeAllListeners("close");
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= frameHeaderBytes) {
      const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
      const end = at + frameHeaderBytes + length;
      if (end > bytes.length) break;
      this.#frame(bytes, at, end, bytes[at + 3]!, bytes[at + 4]!, bytes.readUInt32BE(at + 5) & 0x7fff_ffff);
      at = end;
    }
    // The chunk's memory is used again for the next read: copy what is still needed then.
    this.#rest = at === bytes.length ? nothing : Buffer.from(bytes.subarray(at));
    for (const [stream, message] of this.#messages) {
      if (message.buffer === bytes.buffer) this.#messages.set(stream, Buffer.from(message));
    }
    if (this.#receivedBytes > connectionWindowBytes / 2) {
      this.#socket.write(windowUpdate(0, this.#receivedBytes));
      this.#receivedBytes = 0;
    }
    this.flush();
  }

  #frame(bytes: Buffer, at: number, end: number, type: number, flagBits: number, stream: number): void {
    const payload = at + frameHeaderBytes;
    if (type === frameType.data) {
      this.#receivedBytes += end - payload;
      if (flagBits & flags.padded) throw new Error("padded frames are not read");
      if (end > payload) {
        const before = this.#messages.get(stream);
        const piece = bytes.subarray(payload, end);
        this.#messages.set(stream, before === undefined ? piece : Buffer.concat([before, piece]));
      }
      if (flagBits & flags.endStream) this.#finish(stream);
    } else if (type === frameType.headers) {
      if (flagBits & flags.endStream) this.#finish(stream);
    } else if (type === frameType.settings) {
      if (!(flagBits & flags.ack)) this.#socket.write(settingsAck());
    } else if (type === frameType.ping) {
      if (!(flagBits & flags.ack)) this.#socket.write(pingAck(bytes.subarray(payload, end)));
    } else if (type === frameType.windowUpdate) {
      if (stream === 0) this.#sendWindowBytes += bytes.readUInt32BE(payload) & 0x7fff_ffff;
    } else if (type === frameType.rstStream) {
      this.#messages.delete(stream);
      this.#finish(stream);
    } else if (type === frameType.goAway) {
      this.#fail(new Error(`the server says goodbye, error ${bytes.readUInt32BE(payload + 4)}`));
    }
  }

  #finish(stream: number): void {
    const slot = this.#slots.get(stream);
    if (slot === undefined) return;
    this.#slots.delete(stream);
    const message = this.#messages.get(stream);
    this.#messages.delete(stream);
    const ok = message !== undefined && message.length >= grpcPrefixBytes && message[0] === 0;
    this.#done(slot, ok, ok ? message.subarray(grpcPrefixBytes) : undefined);
  }
}
