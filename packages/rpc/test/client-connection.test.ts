/** The client's side of a connection, before a server that is made of frames. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concat, fromUtf8, http2, readU32BE, writeU32BE } from "@quorate/proto";
import {
  type CallStart,
  ClientConnection,
  type ClientLimits,
  DEFAULT_CLIENT_LIMITS,
  HpackDecoder,
  HpackEncoder,
  type Status,
} from "@quorate/rpc";

const { FrameType, Flag, ErrorCode, frame, Setting, words: u32 } = http2;
const START: CallStart = { path: "/s/m", metadata: [], timeoutMs: undefined };

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Uint8Array;
}

function message(payload: Uint8Array, flag = 0): Uint8Array {
  const bytes = new Uint8Array(5 + payload.length);
  bytes[0] = flag;
  writeU32BE(bytes, payload.length, 1);
  bytes.set(payload, 5);
  return bytes;
}

/** A connection and its server, whose time is 0 until a test moves it. */
class Pair {
  readonly connection: ClientConnection;
  readonly frames: Frame[] = [];
  readonly #splitter: http2.FrameSplitter;
  readonly #encoder = new HpackEncoder();
  #prefaceBytes = 24;

  constructor(limits: Partial<ClientLimits> = {}) {
    this.connection = new ClientConnection(
      { ...DEFAULT_CLIENT_LIMITS, ...limits },
      { wake() {}, settled() {} },
      { authority: "a:1", isSecure: false },
      0,
    );
    this.#splitter = new http2.FrameSplitter({
      frame: (bytes, start, length, type, flags, streamId) => {
        const payload = bytes.slice(start, start + length);
        this.frames.push({ type, flags, streamId, payload });
        return true;
      },
      frameTooLong: (length) => assert.fail(`a frame of ${length} bytes`),
    });
    this.send(frame(FrameType.Settings, 0, 0, new Uint8Array(0)));
  }

  send(...frames: Uint8Array[]): void {
    this.connection.receive(concat(frames), 0);
  }

  /** Frames of a type that the client has sent. */
  sent(type: number): Frame[] {
    for (const chunk of this.connection.takeOutput()) {
      const from = Math.min(this.#prefaceBytes, chunk.length);
      this.#prefaceBytes -= from;
      this.#splitter.push(chunk.slice(), from);
    }
    return this.frames.filter((one) => one.type === type);
  }

  headers(fields: Record<string, string>): Uint8Array {
    return this.#encoder.encode(Object.entries(fields).map(([name, value]) => ({ name, value })));
  }

  head(streamId: number, fields: Record<string, string> = {}): Uint8Array {
    const all = { ":status": "200", "content-type": "application/grpc", ...fields };
    return frame(FrameType.Headers, Flag.EndHeaders, streamId, this.headers(all));
  }

  trailers(streamId: number, fields: Record<string, string>): Uint8Array {
    const flags = Flag.EndHeaders | Flag.EndStream;
    return frame(FrameType.Headers, flags, streamId, this.headers(fields));
  }

  data(streamId: number, payload: Uint8Array): Uint8Array {
    return frame(FrameType.Data, 0, streamId, payload);
  }

  /** A call and what came of it. */
  call(start: CallStart = START) {
    const received: string[] = [];
    let end: (Status & { wasSent: boolean }) | undefined;
    const call = this.connection.call(start, {
      message: (bytes) => received.push(new TextDecoder().decode(bytes)),
      ended: ({ code, message: text }, wasSent) => {
        end = { code, message: text, wasSent };
      },
    });
    return { call: call!, received, end: () => end };
  }
}

test("a call: headers that are cached, metadata, a timeout, a message, its response", () => {
  const pair = new Pair();
  const metadata = [{ name: "token", value: "t" }];
  const first = pair.call({ path: "/s/m", metadata, timeoutMs: 1500 });
  first.call.send(fromUtf8("ask"), true);
  pair.call().call.send(fromUtf8("ask"), true);
  const decoder = new HpackDecoder(4096, 65_536);
  const [one, two] = pair
    .sent(FrameType.Headers)
    .map(({ payload }) =>
      Object.fromEntries(
        decoder.decode(payload, 0, payload.length).map(({ name, value }) => [name, value]),
      ),
    );
  const common = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/s/m",
    ":authority": "a:1",
    te: "trailers",
    "content-type": "application/grpc",
    "user-agent": "quorate",
  };
  assert.deepEqual(one, { ...common, token: "t", "grpc-timeout": "1500m" });
  assert.deepEqual(two, common);
  assert.ok(pair.frames.at(-2)!.payload.length < 20, "a path that was sent before takes few bytes");
  pair.send(
    pair.head(1),
    pair.data(1, message(fromUtf8("reply")).subarray(0, 3)),
    pair.data(1, message(fromUtf8("reply")).subarray(3)),
    pair.trailers(1, { "grpc-status": "0" }),
  );
  assert.deepEqual(first.received, ["reply"]);
  assert.deepEqual(first.end(), { code: 0, message: "", wasSent: true });
  assert.equal(pair.connection.openCalls, 1);
});

const ENDS: readonly (readonly [
  name: string,
  frames: (pair: Pair) => Uint8Array[],
  code: number,
  text: RegExp,
  wasSent: boolean,
])[] = [
  [
    "a status with a text that is percent-encoded",
    (pair) => [
      pair.trailers(1, { ":status": "200", "grpc-status": "5", "grpc-message": "%C3%A4%" }),
    ],
    5,
    /^ä%$/,
    true,
  ],
  ["an unknown code", (pair) => [pair.trailers(1, { "grpc-status": "99" })], 2, /^$/, true],
  [
    "no trailers",
    (pair) => [pair.head(1), frame(FrameType.Data, Flag.EndStream, 1, new Uint8Array(0))],
    13,
    /without sending trailers/,
    true,
  ],
  [
    "a message that does not end",
    (pair) => [
      pair.head(1),
      pair.data(1, Uint8Array.of(0, 0, 0)),
      pair.trailers(1, { "grpc-status": "0" }),
    ],
    13,
    /unexpected EOF/,
    true,
  ],
  [
    "a message that is too long",
    (pair) => [pair.head(1), pair.data(1, Uint8Array.of(0, 0, 0, 0xff, 0xff))],
    8,
    /received message larger than max \(65535 vs. 1000\)/,
    true,
  ],
  [
    "a compressed message",
    (pair) => [pair.head(1), pair.data(1, message(fromUtf8("x"), 1))],
    13,
    /compressed/,
    true,
  ],
  ["DATA before headers", (pair) => [pair.data(1, fromUtf8("x"))], 13, /before/, true],
  ["another protocol", (pair) => [pair.head(1, { "content-type": "text/html" })], 2, /html/, true],
  ["HTTP 503", (pair) => [pair.head(1, { ":status": "503" })], 14, /503/, true],
  [
    "a refused stream",
    () => [frame(FrameType.RstStream, 0, 1, u32(ErrorCode.RefusedStream))],
    14,
    /RefusedStream/,
    false,
  ],
  [
    "a reset",
    () => [frame(FrameType.RstStream, 0, 1, u32(ErrorCode.InternalError))],
    13,
    /InternalError/,
    true,
  ],
  ["GOAWAY before it", () => [frame(FrameType.GoAway, 0, 0, u32(0, 0))], 14, /draining/, false],
  [
    "a frame that is too long",
    () => [frame(FrameType.Data, 0, 1, new Uint8Array(20_000))],
    14,
    /longer/,
    true,
  ],
  ["a stream that was never opened", (pair) => [pair.head(7)], 14, /never opened/, true],
  ["a push", () => [frame(FrameType.PushPromise, 4, 1, u32(2))], 14, /pushes/, true],
  [
    "header compression that is broken",
    () => [frame(FrameType.Headers, Flag.EndHeaders, 1, Uint8Array.of(0xff, 0xff, 0xff))],
    14,
    /integer/,
    true,
  ],
  [
    "a header block without end",
    (pair) => [
      frame(FrameType.Headers, 0, 1, pair.headers({ ":status": "200" })),
      ...Array.from({ length: 40 }, () => frame(FrameType.Continuation, 0, 1, new Uint8Array(1))),
    ],
    14,
    /too long/,
    true,
  ],
  [
    "a window that is overrun",
    (pair) => [
      pair.head(1),
      ...Array.from({ length: 5 }, () => pair.data(1, new Uint8Array(16_384))),
    ],
    14,
    /overrun/,
    true,
  ],
  [
    "windows beyond the protocol",
    () => [frame(FrameType.WindowUpdate, 0, 0, u32(0x7fffffff))],
    14,
    /too large/,
    true,
  ],
];

for (const [name, frames, code, text, wasSent] of ENDS)
  test(`a call ends: ${name}`, () => {
    const pair = new Pair({ maxMessageBytes: 1000, streamWindowBytes: 65_535 });
    const { call, end } = pair.call();
    call.send(fromUtf8("ask"), true);
    // So that the window of a paused call is not opened again.
    if (name.includes("overrun")) call.pause();
    pair.send(...frames(pair));
    const status = end();
    assert.ok(status !== undefined, "it has ended");
    assert.deepEqual([status.code, status.wasSent], [code, wasSent]);
    assert.match(status.message, text);
    assert.equal(pair.connection.openCalls, 0);
  });

test("messages wait while a call is paused, and its window is opened when it resumes", () => {
  const pair = new Pair({ streamWindowBytes: 65_535 });
  const { call, received, end } = pair.call();
  call.pause();
  const large = message(new Uint8Array(15_000));
  pair.send(pair.head(1), pair.data(1, large), pair.data(1, large), pair.data(1, large));
  pair.send(pair.trailers(1, { "grpc-status": "0" }));
  assert.deepEqual([received.length, end()], [0, undefined]);
  call.resume();
  assert.equal(received.length, 3);
  assert.equal(end()?.code, 0);
  const second = pair.call();
  second.call.pause();
  pair.send(pair.head(3), pair.data(3, large), pair.data(3, large), pair.data(3, large));
  const opened = () => pair.sent(FrameType.WindowUpdate).filter(({ streamId }) => streamId === 3);
  assert.equal(opened().length, 0);
  second.call.resume();
  assert.equal(opened().length, 1);
});

test("requests wait for the server's windows, in order, and bounded", () => {
  const pair = new Pair({ maxPendingBytes: 3_000_000 });
  const { call, end } = pair.call();
  assert.equal(call.send(new Uint8Array(60_000)), true);
  assert.equal(call.send(new Uint8Array(2_000_000)), false, "more than the budget waits");
  const bytes = () =>
    pair.sent(FrameType.Data).reduce((sum, { payload }) => sum + payload.length, 0);
  assert.equal(bytes(), 65_535);
  pair.send(
    frame(FrameType.WindowUpdate, 0, 1, u32(100_000)),
    frame(FrameType.WindowUpdate, 0, 0, u32(40_000)),
  );
  assert.equal(bytes(), 105_535);
  call.send(new Uint8Array(2_000_000));
  assert.equal(end()?.code, 8);
  assert.equal(readU32BE(pair.sent(FrameType.RstStream)[0].payload, 0), ErrorCode.Cancel);
});

test("calls at one time are bounded by the server and by the client", () => {
  const pair = new Pair({ maxConcurrentCalls: 3 });
  for (let i = 0; i < 3; i++) pair.call();
  assert.equal(pair.connection.call(START, { message() {}, ended() {} }), undefined);
  const strict = new Pair();
  const setting = Uint8Array.of(0, Setting.MaxConcurrentStreams, 0, 0, 0, 1);
  strict.send(frame(FrameType.Settings, 0, 0, setting));
  strict.call();
  assert.equal(strict.connection.call(START, { message() {}, ended() {} }), undefined);
});

test("a cancelled call is reset, and hears nothing more", () => {
  const pair = new Pair();
  const { call, received, end } = pair.call();
  call.cancel();
  pair.send(pair.head(1), pair.data(1, message(fromUtf8("late"))));
  assert.deepEqual([received, end()], [[], undefined]);
  assert.equal(readU32BE(pair.sent(FrameType.RstStream)[0].payload, 0), ErrorCode.Cancel);
});

test("a silent server is pinged while a call is open, and left without an acknowledgement", () => {
  const pair = new Pair({ keepAliveTimeMs: 1000, keepAliveTimeoutMs: 500 });
  const { connection } = pair;
  connection.sweep(5000);
  assert.equal(pair.sent(FrameType.Ping).length, 0, "no call is open");
  const { end } = pair.call();
  connection.sweep(6000);
  assert.equal(pair.sent(FrameType.Ping).length, 1);
  connection.receive(frame(FrameType.Ping, Flag.Ack, 0, new Uint8Array(8)), 6100);
  connection.sweep(6700);
  assert.equal(end(), undefined);
  connection.sweep(7200);
  connection.sweep(7800);
  assert.equal(end()?.message, "keepalive ping failed to receive ACK within timeout");
  assert.equal(connection.ending, true);
});

test("a server that was silent while a call waited in vain is pinged once, and then left", () => {
  const pair = new Pair({ keepAliveTimeoutMs: 500 });
  const { connection } = pair;
  const { end } = pair.call();
  connection.receive(frame(FrameType.Ping, Flag.Ack, 0, new Uint8Array(8)), 1000);
  connection.doubt(5999);
  assert.equal(pair.sent(FrameType.Ping).length, 0, "etcd ends connections that ping more often");
  connection.doubt(6000);
  connection.doubt(6100);
  assert.equal(pair.sent(FrameType.Ping).length, 1);
  connection.receive(frame(FrameType.Ping, Flag.Ack, 0, new Uint8Array(8)), 6200);
  connection.sweep(7000);
  assert.equal(end(), undefined);
  connection.doubt(11_300);
  connection.sweep(11_800);
  assert.equal(end()?.message, "keepalive ping failed to receive ACK within timeout");
});
