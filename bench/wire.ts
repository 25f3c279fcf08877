/**
 * Ready-made bytes of HTTP/2 and gRPC requests. The first request of a method on a connection
 * brings its header fields into the peer's HPACK table; the later ones name them by index, as real
 * clients do:
 *
 *   HEADERS frame: 83 (:method POST) 86 (:scheme http) [path] [authority] [content-type] [te]
 *   [user-agent]
 *   DATA frame:    00 (not compressed) | message length, 4 bytes | message
 */
import { http2 } from "@quorate/proto";

export const { Flag: flags, FRAME_HEADER_BYTES: frameHeaderBytes, FrameType: frameType } = http2;
export const grpcPrefixBytes = 5;

/** What a client says first. Its windows are large, so that updates are rare. */
export const streamWindowBytes = 64 * 1024 * 1024;
export const connectionWindowBytes = 256 * 1024 * 1024;

export function preface(): Buffer {
  return Buffer.concat([
    Buffer.from(http2.PREFACE, "latin1"),
    frame(frameType.Settings, 0, 0, Buffer.concat([setting(2, 0), setting(4, streamWindowBytes)])),
    windowUpdate(0, connectionWindowBytes - http2.DEFAULT_WINDOW_BYTES),
  ]);
}

export const settingsAck = (): Buffer => frame(frameType.Settings, flags.Ack, 0, Buffer.alloc(0));
export const pingAck = (payload: Uint8Array): Buffer =>
  frame(frameType.Ping, flags.Ack, 0, payload);

export function windowUpdate(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(frameType.WindowUpdate, 0, stream, payload);
}

function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

/** One frame. */
export function frame(type: number, flagBits: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(frameHeaderBytes + payload.length);
  writeFrameHeader(bytes, 0, payload.length, type, flagBits, stream);
  bytes.set(payload, frameHeaderBytes);
  return bytes;
}

export function writeFrameHeader(
  into: Uint8Array,
  at: number,
  length: number,
  type: number,
  flagBits: number,
  stream: number,
): void {
  into[at] = length >>> 16;
  into[at + 1] = length >>> 8;
  into[at + 2] = length;
  into[at + 3] = type;
  into[at + 4] = flagBits;
  into[at + 5] = stream >>> 24;
  into[at + 6] = stream >>> 16;
  into[at + 7] = stream >>> 8;
  into[at + 8] = stream;
}

/**
 * The header blocks of one connection's requests. What a block names for the first time it adds to
 * the peer's table; later blocks point there. The newest entry of the table has index 62, so
 * pointers move as long as new paths come.
 */
export class HeaderBlocks {
  readonly #start: Buffer;
  readonly #common: readonly Buffer[];
  readonly #paths: readonly string[];
  /**
   * Entries in the peer's table, and the number that each path's entry has (0: not there yet). The
   * common ones follow the first.
   */
  #entries = 0;
  readonly #entryOf: number[];
  readonly #known: (Buffer | undefined)[];

  /** @param more fields of each request, such as a token */
  constructor(
    paths: readonly string[],
    authority: string,
    scheme: "http" | "https",
    more: readonly (readonly [name: string, value: string])[] = [],
  ) {
    this.#start = Buffer.from([0x83, scheme === "http" ? 0x86 : 0x87]);
    this.#common = [
      indexedName(1, authority),
      indexedName(31, "application/grpc"),
      literalName("te", "trailers"),
      indexedName(58, "quorate-bench/1"),
      ...more.map(([name, value]) => literalName(name, value)),
    ];
    this.#paths = paths;
    this.#entryOf = paths.map(() => 0);
    this.#known = paths.map(() => undefined);
  }

  /**
   * The block for the next request to the path with this place; blocks must be sent in the order in
   * which they were asked for.
   */
  take(path: number): Buffer {
    return this.#known[path] ?? this.#make(path);
  }

  #make(path: number): Buffer {
    const isFirst = this.#entries === 0;
    if (this.#entryOf[path] === 0) {
      const added = indexedName(4, this.#paths[path]);
      this.#entryOf[path] = ++this.#entries;
      this.#known.fill(undefined);
      if (isFirst) {
        this.#entries += this.#common.length;
        return Buffer.concat([this.#start, added, ...this.#common]);
      }
      return Buffer.concat([this.#start, added, this.#pointers()]);
    }
    const block = Buffer.concat([
      this.#start,
      this.#pointer(this.#entryOf[path]),
      this.#pointers(),
    ]);
    this.#known[path] = block;
    return block;
  }

  /** To authority, content type, te and user agent: entries 2 and on. */
  #pointers(): Buffer {
    return Buffer.concat(this.#common.map((_, index) => this.#pointer(2 + index)));
  }

  #pointer(entry: number): Buffer {
    return Buffer.from([0x80 | (62 + this.#entries - entry)]);
  }
}

/** Literal with incremental indexing, its name from the static table. */
function indexedName(index: number, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40 | index]), plainString(value)]);
}

function literalName(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40]), plainString(name), plainString(value)]);
}

/** A string, not Huffman coded (RFC 7541, 5.2). */
function plainString(text: string): Buffer {
  const length = text.length < 127 ? [text.length] : [127, ...varint(text.length - 127)];
  return Buffer.concat([Buffer.from(length), Buffer.from(text, "latin1")]);
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)];
}
