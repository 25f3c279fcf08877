/**
 * The client's side of one HTTP/2 connection with gRPC calls (RFC 9113, RFC 7541, gRPC over
 * HTTP/2), as bytes in and out. It keeps the rules, and makes a violation of a server that does
 * not: it speaks to rpc's own connection under the simulator.
 *
 *   RPC-1 integrity   what a call delivers is what the other side sent: the same messages, in the
 *                     same order, none left out before its end
 *   RPC-2 flow        the server sends no more than the windows of the client have space for
 *   RPC-3 damage      a frame that is longer than allowed ends the connection on either side
 */
import type { Random } from "@quorate/host";
import { concat, fromLatin1, http2, readU32BE, toUtf8, writeU32BE } from "@quorate/proto";
import { HpackDecoder, HpackEncoder } from "@quorate/rpc";
import { violate } from "../base/violation.ts";

const { DEFAULT_WINDOW_BYTES, ErrorCode, Flag, frame, FrameType, Setting, words } = http2;

const PREFIX_BYTES = 5;
const MAX_FRAME_BYTES = http2.DEFAULT_MAX_FRAME_BYTES;
const MAX_HEADER_LIST_BYTES = 64 * 1024;
/** Windows of streams are this large at least, and up to sixteen times as large. */
const LEAST_WINDOW_BYTES = 4096;
/** How a field is written that no table has (Indexing of rpc's encoder). */
const INDEXED = 0x40;

/** What a call delivers. */
export interface CallEvents {
  /** @param taken to be called when the client has read the message: it frees space for more */
  message(bytes: Uint8Array, taken: () => void): void;
  /** The server has ended the call with a gRPC status. Called once, and not after `cancel`. */
  ended(code: number, text: string): void;
}

export class GrpcCall {
  readonly id: number;
  readonly events: CallEvents;
  readonly #client: GrpcClient;
  /** Bytes that wait for the server's windows. */
  readonly waiting: Uint8Array[] = [];
  /** The client will send nothing more; the mark of the end has left. */
  isEnding = false;
  isEnded = false;
  sendWindowBytes: number;
  receiveWindowBytes: number;
  /** What came of a message that is not whole yet. */
  partial: Uint8Array[] = [];
  partialBytes = 0;

  constructor(client: GrpcClient, id: number, events: CallEvents, windows: [number, number]) {
    this.#client = client;
    this.id = id;
    this.events = events;
    [this.sendWindowBytes, this.receiveWindowBytes] = windows;
  }

  /** Sends one message. */
  send(bytes: Uint8Array): void {
    const framed = new Uint8Array(PREFIX_BYTES + bytes.length);
    writeU32BE(framed, bytes.length, 1);
    framed.set(bytes, PREFIX_BYTES);
    this.waiting.push(framed);
    this.#client.flush(this);
  }

  /** Says that nothing more will be sent. */
  end(): void {
    this.isEnding = true;
    this.#client.flush(this);
  }

  /** Abandons the call; nothing more is heard of it. */
  cancel(): void {
    this.#client.cancel(this);
  }
}

export class GrpcClient {
  readonly #splitter: http2.FrameSplitter;
  readonly #decoder = new HpackDecoder(4096, MAX_HEADER_LIST_BYTES);
  readonly #encoder = new HpackEncoder();
  readonly #random: Random;
  readonly #wake: () => void;
  readonly #calls = new Map<number, GrpcCall>();
  readonly #windowBytes: number;
  #nextId = 1;
  #out: Uint8Array[] = [];
  #sendWindowBytes = DEFAULT_WINDOW_BYTES;
  #receiveWindowBytes = DEFAULT_WINDOW_BYTES;
  #initialSendWindowBytes = DEFAULT_WINDOW_BYTES;
  /** Parts of a header block that is not whole, and the frame that it began with. */
  #block: { readonly streamId: number; readonly flags: number; parts: Uint8Array[] } | undefined;
  /** Why the server ended the connection, or the client found it damaged. */
  over: string | undefined;

  /** @param wake called when there is output, or the connection is over; may be called often */
  constructor(random: Random, wake: () => void) {
    this.#random = random;
    this.#wake = wake;
    this.#windowBytes = LEAST_WINDOW_BYTES << random.below(5);
    this.#splitter = new http2.FrameSplitter({
      frame: (bytes, start, length, type, flags, streamId) => {
        this.#frame(bytes.slice(start, start + length), type, flags, streamId);
        return this.over === undefined;
      },
      frameTooLong: (length) => this.#end(`a frame of ${length} bytes`),
    });
    const settings = http2.settingsFrame([Setting.InitialWindowSize, this.#windowBytes]);
    this.#out.push(fromLatin1(http2.PREFACE), settings);
  }

  /** Calls that are not over. */
  get openCalls(): number {
    return this.#calls.size;
  }

  takeOutput(): Uint8Array | undefined {
    if (this.#out.length === 0) return undefined;
    const bytes = concat(this.#out);
    this.#out = [];
    return bytes;
  }

  /** Begins a call. */
  call(path: string, metadata: Readonly<Record<string, string>>, events: CallEvents): GrpcCall {
    const windows: [number, number] = [this.#initialSendWindowBytes, this.#windowBytes];
    const call = new GrpcCall(this, this.#nextId, events, windows);
    this.#nextId += 2;
    this.#calls.set(call.id, call);
    const fields = Object.entries({
      ":method": "POST",
      ":scheme": "http",
      ":path": path,
      ":authority": "member",
      te: "trailers",
      "content-type": "application/grpc",
      ...metadata,
    }).map(([name, value]) => ({ name, value, indexing: this.#indexing() }));
    const block = this.#encoder.encode(fields);
    // Some blocks come in two frames.
    const cut = this.#random.below(8) === 0 ? 1 + this.#random.below(block.length - 1) : 0;
    if (cut === 0) this.#write(FrameType.Headers, Flag.EndHeaders, call.id, block);
    else {
      this.#write(FrameType.Headers, 0, call.id, block.subarray(0, cut));
      this.#write(FrameType.Continuation, Flag.EndHeaders, call.id, block.subarray(cut));
    }
    return call;
  }

  #indexing(): 0x40 | 0x00 {
    return this.#random.below(2) === 0 ? INDEXED : 0x00;
  }

  /** Sends what the windows have space for. */
  flush(call: GrpcCall): void {
    if (call.isEnded || this.over !== undefined || !this.#calls.has(call.id)) return;
    while (call.waiting.length > 0) {
      const space = Math.min(this.#sendWindowBytes, call.sendWindowBytes, MAX_FRAME_BYTES);
      if (space <= 0) return;
      const [first] = call.waiting;
      const part = first.subarray(0, space);
      this.#sendWindowBytes -= part.length;
      call.sendWindowBytes -= part.length;
      if (part.length === first.length) call.waiting.shift();
      else call.waiting[0] = first.subarray(space);
      const isLast = call.isEnding && call.waiting.length === 0;
      call.isEnded = isLast;
      this.#write(FrameType.Data, isLast ? Flag.EndStream : 0, call.id, part);
    }
    if (!call.isEnding || call.isEnded) return;
    call.isEnded = true;
    this.#write(FrameType.Data, Flag.EndStream, call.id, new Uint8Array(0));
  }

  cancel(call: GrpcCall): void {
    if (!this.#calls.delete(call.id)) return;
    this.#write(FrameType.RstStream, 0, call.id, words(ErrorCode.Cancel));
  }

  /** The connection is gone: every open call ends. */
  lost(reason: string): void {
    this.over ??= reason;
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.events.ended(14, reason);
  }

  /** Takes bytes from the server; the chunk must not change any more. */
  receive(chunk: Uint8Array): void {
    if (this.over === undefined) this.#splitter.push(chunk, 0);
  }

  #end(reason: string): void {
    this.over ??= reason;
    this.#wake();
  }

  #write(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    if (this.over !== undefined) return;
    this.#out.push(frame(type, flags, streamId, payload));
    this.#wake();
  }

  #frame(payload: Uint8Array, type: number, flags: number, streamId: number): void {
    if (this.#block !== undefined && type !== FrameType.Continuation)
      violate("RPC-1", "a header block is interrupted");
    if (type === FrameType.Data) this.#data(payload, flags, streamId);
    else if (type === FrameType.Headers) {
      this.#block = { streamId, flags, parts: [payload] };
      this.#headers(flags);
    } else if (type === FrameType.Continuation) {
      this.#block?.parts.push(payload);
      this.#headers(flags);
    } else if (type === FrameType.Settings && (flags & Flag.Ack) === 0) this.#settings(payload);
    else if (type === FrameType.Ping && (flags & Flag.Ack) === 0)
      this.#write(FrameType.Ping, Flag.Ack, 0, payload);
    else if (type === FrameType.WindowUpdate) this.#windowUpdate(streamId, readU32BE(payload, 0));
    else if (type === FrameType.RstStream) this.#reset(streamId, readU32BE(payload, 0));
    else if (type === FrameType.GoAway) this.#end(`GOAWAY ${readU32BE(payload, 4)}`);
  }

  #settings(payload: Uint8Array): void {
    for (let at = 0; at < payload.length; at += 6) {
      if ((payload[at] << 8) + payload[at + 1] !== Setting.InitialWindowSize) continue;
      const more = readU32BE(payload, at + 2) - this.#initialSendWindowBytes;
      this.#initialSendWindowBytes += more;
      for (const call of this.#calls.values()) call.sendWindowBytes += more;
    }
    this.#write(FrameType.Settings, Flag.Ack, 0, new Uint8Array(0));
    for (const call of this.#calls.values()) this.flush(call);
  }

  #windowUpdate(streamId: number, bytes: number): void {
    const call = this.#calls.get(streamId);
    if (streamId === 0) {
      this.#sendWindowBytes += bytes;
      for (const each of this.#calls.values()) this.flush(each);
    } else if (call !== undefined) {
      call.sendWindowBytes += bytes;
      this.flush(call);
    }
  }

  #reset(streamId: number, code: number): void {
    const call = this.#calls.get(streamId);
    if (call === undefined || code === ErrorCode.NoError) return;
    this.#calls.delete(streamId);
    call.events.ended(14, `stream reset with code ${code}`);
  }

  #headers(flags: number): void {
    if ((flags & Flag.EndHeaders) === 0 || this.#block === undefined) return;
    const { streamId, flags: first, parts } = this.#block;
    this.#block = undefined;
    const block = concat(parts);
    const fields = new Map<string, string>();
    // Also for a call that was given up: each block may change the table.
    for (const { name, value } of this.#decoder.decode(block, 0, block.length))
      fields.set(name, value);
    const call = this.#calls.get(streamId);
    if (call === undefined || (first & Flag.EndStream) === 0) return;
    this.#calls.delete(streamId);
    const status = fields.get("grpc-status");
    if (status === undefined) violate("RPC-1", `a call ends without a status: ${[...fields]}`);
    if (call.partialBytes > 0 && status === "0")
      violate("RPC-1", `a call ends well within a message, after ${call.partialBytes} bytes`);
    call.events.ended(Number(status), percentDecoded(fields.get("grpc-message") ?? ""));
  }

  #data(payload: Uint8Array, flags: number, streamId: number): void {
    this.#receiveWindowBytes -= payload.length;
    if (this.#receiveWindowBytes < 0)
      violate("RPC-2", `the connection's window is overrun by ${-this.#receiveWindowBytes} bytes`);
    if (payload.length > 0) this.#credit(0, payload.length);
    const call = this.#calls.get(streamId);
    if (call === undefined) return;
    if ((flags & Flag.EndStream) !== 0) violate("RPC-1", "a call ends without trailers");
    call.receiveWindowBytes -= payload.length;
    if (call.receiveWindowBytes < 0)
      violate("RPC-2", `a stream's window is overrun by ${-call.receiveWindowBytes} bytes`);
    call.partial.push(payload);
    call.partialBytes += payload.length;
    this.#messages(call);
  }

  #messages(call: GrpcCall): void {
    while (call.partialBytes >= PREFIX_BYTES) {
      const joined = call.partial.length === 1 ? call.partial[0] : concat(call.partial);
      call.partial = [joined];
      const length = readU32BE(joined, 1);
      const end = PREFIX_BYTES + length;
      if (joined.length < end) break;
      call.partial = joined.length > end ? [joined.subarray(end)] : [];
      call.partialBytes -= end;
      call.events.message(joined.slice(PREFIX_BYTES, end), () => this.#taken(call, end));
      if (!this.#calls.has(call.id)) return;
    }
    // A message that is longer than the window would never be whole.
    const held = call.partialBytes;
    if (held > 0 && call.receiveWindowBytes < LEAST_WINDOW_BYTES / 2) {
      call.receiveWindowBytes += this.#windowBytes;
      this.#credit(call.id, this.#windowBytes);
    }
  }

  #taken(call: GrpcCall, bytes: number): void {
    if (!this.#calls.has(call.id)) return;
    const space = Math.min(bytes, this.#windowBytes - call.receiveWindowBytes);
    if (space <= 0) return;
    call.receiveWindowBytes += space;
    this.#credit(call.id, space);
  }

  #credit(streamId: number, bytes: number): void {
    if (streamId === 0) this.#receiveWindowBytes += bytes;
    this.#write(FrameType.WindowUpdate, 0, streamId, words(bytes));
  }
}

/** A status text as gRPC writes it: bytes beyond ASCII, and %, as %XX. */
function percentDecoded(text: string): string {
  if (!text.includes("%")) return text;
  const bytes = fromLatin1(
    text.replace(/%([0-9a-fA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
  );
  return toUtf8(bytes, 0, bytes.length);
}
