/**
 * A peer made by hand: the streams and requests of members' own protocol, with whatever content.
 * HTTP/2 as far as a member's stream needs it (packages/transport/src/tunnel.ts): preface,
 * SETTINGS, one HEADERS with plain fields, DATA.
 */
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { http2, idToHex } from "@quorate/proto";

/** The member that a peer pretends to be, and the member that it connects to. */
export interface PeerIdentity {
  readonly from: bigint;
  readonly to: bigint;
  readonly clusterId: bigint;
  /** With TLS: PEM texts. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string };
}

const { encodePlainFields, Flag, frame, FrameType } = http2;

function headersOf({ from, to, clusterId }: PeerIdentity): Record<string, string> {
  return {
    "x-quorate-protocol": "1",
    "x-quorate-cluster-id": idToHex(clusterId),
    "x-quorate-from": idToHex(from),
    "x-quorate-to": idToHex(to),
    "x-quorate-server-version": "3.7.0",
    "x-quorate-min-cluster-version": "3.0.0",
    "x-quorate-peer-urls": "",
  };
}

function open(url: string, identity: PeerIdentity): Socket {
  const { hostname, port } = new URL(url);
  const { tls } = identity;
  if (tls === undefined) return connect(Number(port), hostname);
  return connectTls({
    host: hostname,
    port: Number(port),
    ...tls,
    ALPNProtocols: ["h2"],
    checkServerIdentity: () => undefined,
  });
}

/** A stream of messages to one member. */
export class PeerStream {
  readonly #socket: Socket;
  /** Resolves when the member has ended the connection, or this side has. */
  readonly closed: Promise<void>;
  isClosed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.isClosed = true;
        resolve();
      });
    });
    socket.on("error", () => {});
    socket.resume();
  }

  /**
   * Opens a stream, "urgent" or "bulk". What the member answers is not looked at: the caller sees
   * whether it stays open.
   */
  static open(url: string, identity: PeerIdentity, kind: "urgent" | "bulk" = "urgent"): PeerStream {
    const socket = open(url, identity);
    const request = {
      ":method": "POST",
      ":scheme": "http",
      ":authority": "peer",
      ":path": `/raft/stream/${kind}`,
    };
    const head = encodePlainFields(
      Object.entries({
        ...request,
        "content-type": "application/octet-stream",
        ...headersOf(identity),
      }),
    );
    socket.write(
      Buffer.concat([
        Buffer.from(http2.PREFACE, "latin1"),
        frame(FrameType.Settings, 0, 0),
        frame(FrameType.Headers, Flag.EndHeaders, 1, head),
      ]),
    );
    return new PeerStream(socket);
  }

  /** Sends one message in its frame; false when the connection is gone. */
  send(message: Uint8Array): boolean {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(message.length);
    return this.sendRaw(Buffer.concat([length, message]));
  }

  /** Sends bytes of the stream, framed or not. */
  sendRaw(bytes: Uint8Array): boolean {
    if (this.isClosed) return false;
    for (let at = 0; at < Math.max(bytes.length, 1); at += 16_000)
      this.#socket.write(frame(FrameType.Data, 0, 1, bytes.subarray(at, at + 16_000)));
    return true;
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** Sends bytes as a snapshot; returns the status, 0 where the connection broke. */
export function sendSnapshot(
  url: string,
  identity: PeerIdentity,
  body: Uint8Array,
  limitMs: number,
): Promise<number> {
  return new Promise((resolve) => {
    const { tls } = identity;
    const session = connectHttp2(
      url,
      tls === undefined ? {} : { ...tls, checkServerIdentity: () => undefined },
    );
    const timer = setTimeout(() => session.destroy(), limitMs);
    let status = 0;
    session.on("error", () => {});
    session.on("close", () => {
      clearTimeout(timer);
      resolve(status);
    });
    const stream = session.request({
      ":method": "POST",
      ":path": "/raft/snapshot",
      ...headersOf(identity),
    });
    stream.on("response", (headers) => {
      status = headers[":status"] ?? 0;
    });
    stream.on("error", () => {});
    stream.on("close", () => session.destroy());
    stream.resume();
    stream.end(body);
  });
}
