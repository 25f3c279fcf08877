/**
 * A client for the engine's core: frames in and out of an Http2Connection without a socket, time by
 * hand, output as lines of text.
 */
import { concat, fromLatin1, http2, toHex, toLatin1 } from "@quorate/proto";
import {
  type EncodableField,
  HpackDecoder,
  HpackEncoder,
  Indexing,
} from "../../src/hpack/hpack.ts";
import {
  type ConnectionOwner,
  Http2Connection,
  type RequestAcceptor,
} from "../../src/http2/connection.ts";
import { ErrorCode, Flag, FrameType, PREFACE, Setting } from "../../src/http2/constants.ts";
import { DEFAULT_HTTP2_LIMITS, type Http2Limits } from "../../src/http2/limits.ts";
import type { Peer } from "../../src/http2/peer.ts";
import { Http2Shared } from "../../src/http2/shared.ts";

export const MIB = 1024 * 1024;

export const { frame, settingsFrame, windowUpdateFrame: windowUpdate, words } = http2;

export function rstStream(streamId: number, code: number = ErrorCode.Cancel): Uint8Array {
  return frame(FrameType.RstStream, 0, streamId, words(code));
}

export function data(streamId: number, payload: Uint8Array | number, end = false): Uint8Array {
  return frame(
    FrameType.Data,
    end ? Flag.EndStream : 0,
    streamId,
    typeof payload === "number" ? new Uint8Array(payload) : payload,
  );
}

export function fieldsOf(
  headers: Record<string, string>,
  indexing: Indexing = Indexing.None,
): EncodableField[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value, indexing }));
}

export const GET: Record<string, string> = {
  ":method": "GET",
  ":scheme": "http",
  ":path": "/",
  ":authority": "test",
};

const nameOf = (table: Record<string, number>, value: number): string =>
  Object.entries(table).find(([, number]) => number === value)?.[0] ?? String(value);

/** One frame that came out, and what it says in a line. */
export interface OutFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Uint8Array;
  readonly line: string;
}

export interface CoreOptions {
  readonly limits?: Partial<Http2Limits>;
  readonly maxHeldTotalBytes?: number;
  readonly maxPendingTotalBytes?: number;
  readonly maxHeadTotalBytes?: number;
  /** Connections of one server share this. */
  readonly shared?: Http2Shared;
  readonly peer?: Peer;
}

export function sharedOf(options: CoreOptions): Http2Shared {
  return (
    options.shared ??
    new Http2Shared(
      // A test takes the output of many turns at once.
      { ...DEFAULT_HTTP2_LIMITS, outputTargetBytes: MIB, ...options.limits },
      options.maxHeldTotalBytes ?? 512 * MIB,
      options.maxPendingTotalBytes ?? 512 * MIB,
      options.maxHeadTotalBytes ?? 512 * MIB,
    )
  );
}

export class CoreClient implements ConnectionOwner {
  readonly connection: Http2Connection;
  readonly shared: Http2Shared;
  readonly encoder = new HpackEncoder();
  /** How `headers` writes fields that no table has. */
  indexing: Indexing = Indexing.None;
  /** Turns that the connection waits for: one at the most. */
  turnsLeft = 0;
  /** Times that `wake` was called since the last `take`. */
  wakes = 0;
  nowMs = 0;
  readonly #decoder = new HpackDecoder(4096, MIB);
  #rest: Uint8Array = new Uint8Array(0);

  constructor(acceptor: RequestAcceptor, options: CoreOptions = {}) {
    this.shared = sharedOf(options);
    this.connection = new Http2Connection(
      this.shared,
      acceptor,
      this,
      options.peer ?? { peerAddress: "127.0.0.1:1", peerCommonName: undefined },
      0,
    );
  }

  wake(): void {
    this.wakes++;
  }

  settled(): void {}

  heldBack(): void {
    this.turnsLeft++;
  }

  /** Sends bytes in one chunk, and gives the connection as many turns as it wants for them. */
  send(...chunks: Uint8Array[]): void {
    this.connection.receive(concat(chunks), this.nowMs);
    while (this.goOn());
  }

  /** Gives the connection the turn that it waits for; false if it waits for none. */
  goOn(): boolean {
    if (this.turnsLeft === 0) return false;
    this.turnsLeft--;
    this.connection.goOn(this.nowMs);
    return true;
  }

  /** The preface and settings; takes the server's own. */
  greet(...settings: readonly (readonly [id: number, value: number])[]): void {
    this.send(fromLatin1(PREFACE), settingsFrame(...settings));
    this.take();
  }

  /** HEADERS of a request. */
  headers(streamId: number, headers: Record<string, string>, end = false): Uint8Array {
    const flags = Flag.EndHeaders | (end ? Flag.EndStream : 0);
    return frame(
      FrameType.Headers,
      flags,
      streamId,
      this.encoder.encode(fieldsOf(headers, this.indexing)),
    );
  }

  sweep(afterMs: number): void {
    this.nowMs += afterMs;
    this.connection.sweep(this.nowMs);
  }

  /** The frames that came out since the last time. */
  takeFrames(): OutFrame[] {
    this.wakes = 0;
    const bytes = concat([this.#rest, ...this.connection.takeOutput()]);
    const frames: OutFrame[] = [];
    let at = 0;
    while (bytes.length - at >= 9) {
      const view = new DataView(bytes.buffer, bytes.byteOffset + at);
      const end = at + 9 + (view.getUint32(0) >>> 8);
      if (end > bytes.length) break;
      frames.push(
        this.#read(bytes[at + 3], bytes[at + 4], view.getUint32(5), bytes.slice(at + 9, end)),
      );
      at = end;
    }
    this.#rest = new Uint8Array(bytes.subarray(at));
    return frames;
  }

  /** What came out since the last time, a line a frame. */
  take(): string[] {
    return this.takeFrames().map((one) => one.line);
  }

  #read(type: number, flags: number, streamId: number, payload: Uint8Array): OutFrame {
    return { type, flags, streamId, payload, line: this.#line(type, flags, streamId, payload) };
  }

  #line(type: number, flags: number, streamId: number, payload: Uint8Array): string {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
    const word = (at: number): number => view.getUint32(at);
    const ack = (flags & Flag.Ack) !== 0 ? " ack" : "";
    const end = (flags & Flag.EndStream) !== 0 ? " end" : "";
    switch (type) {
      case FrameType.Data:
        return `DATA ${streamId} ${payload.length}${end}`;
      case FrameType.Headers: {
        const fields = this.#decoder
          .decode(payload, 0, payload.length)
          .map(({ name, value }) => `${name}=${value}`);
        return `HEADERS ${streamId} ${fields.join(" ")}${end}`;
      }
      case FrameType.RstStream:
        return `RST_STREAM ${streamId} ${nameOf(ErrorCode, word(0))}`;
      case FrameType.Settings: {
        const all = Array.from(
          { length: payload.length / 6 },
          (_, i) => `${nameOf(Setting, view.getUint16(i * 6))}=${word(i * 6 + 2)}`,
        );
        return ["SETTINGS", ...all].join(" ") + ack;
      }
      case FrameType.Ping:
        return `PING ${toHex(payload)}${ack}`;
      case FrameType.GoAway:
        return `GOAWAY ${word(0)} ${nameOf(ErrorCode, word(4))} ${toLatin1(payload, 8)}`.trimEnd();
      case FrameType.WindowUpdate:
        return `WINDOW_UPDATE ${streamId} ${word(0)}`;
      default:
        return `type ${type} ${streamId} ${payload.length}`;
    }
  }
}
