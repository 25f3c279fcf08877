/** gRPC on the engine's connections: calls of all four kinds, how they end, what they may cost. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { concat, equals, fromLatin1, fromUtf8, toLatin1 } from "@quorate/proto";
import { type CallContext, StatusError, type StreamCall } from "@quorate/rpc";
import { FrameType, Setting } from "../src/http2/constants.ts";
import { data, GET, MIB, rstStream, settingsFrame, windowUpdate } from "./engine/core.ts";
import { CALL, DATE, GrpcClient, message, settle } from "./engine/grpc.ts";

const HELLO = fromLatin1("hello");
const HEADERS_OK = ":status=200 content-type=application/grpc";

/** Answers at once with the request. */
const ECHO = { "/test.Echo/Now": (bytes: Uint8Array) => bytes };

/** What a stream's frames carry as messages, unframed. */
function messagesOf(client: GrpcClient, streamId: number): Uint8Array[] {
  const body = concat(
    client
      .takeFrames()
      .flatMap((one) =>
        one.type === FrameType.Data && one.streamId === streamId ? [one.payload] : [],
      ),
  );
  const messages: Uint8Array[] = [];
  for (let at = 0; at < body.length; ) {
    const end = at + 5 + new DataView(body.buffer, body.byteOffset + at).getUint32(1);
    messages.push(body.slice(at, end));
    at = end;
  }
  return messages;
}

describe("a unary call", () => {
  test("is three frames, of 35 bytes beside the message once the client's table knows the fields", () => {
    const client = new GrpcClient({ unary: ECHO });
    client.call(1, HELLO);
    assert.deepEqual(client.take(), [
      `HEADERS 1 ${HEADERS_OK}`,
      "DATA 1 10",
      "HEADERS 1 grpc-status=0 end",
    ]);
    client.call(3, HELLO);
    const frames = client.takeFrames();
    assert.deepEqual(
      frames.map((one) => one.payload.length),
      [2, 10, 1],
    );
    assert.deepEqual(frames[1].payload, message(HELLO));
  });

  test("answers later, and in pieces", async () => {
    const { promise, resolve } = Promise.withResolvers<readonly Uint8Array[]>();
    const client = new GrpcClient({ unary: { "/test.Echo/Now": () => promise } });
    client.call(1, HELLO);
    assert.deepEqual(client.take(), []);
    resolve([fromLatin1("he"), fromLatin1("llo")]);
    await settle();
    assert.equal(client.wakes, 1);
    assert.deepEqual(messagesOf(client, 1), [message(HELLO)]);
  });

  test("may come in any pieces, with its end in a frame of its own or in trailers", () => {
    const client = new GrpcClient({ unary: ECHO });
    const body = message(HELLO);
    client.send(client.headers(1, CALL));
    for (const byte of body) client.send(data(1, Uint8Array.of(byte)));
    client.send(data(1, 0, true));
    assert.deepEqual(messagesOf(client, 1), [body]);
    client.send(client.headers(3, CALL), data(3, body), client.headers(3, { "x-end": "1" }, true));
    assert.deepEqual(messagesOf(client, 3), [body]);
    assert.equal(client.shared.held.usedBytes, 0);
  });

  test("ends with the status that its service throws", async () => {
    const client = new GrpcClient({
      unary: {
        "/test.Echo/Throw": () => {
          throw new StatusError(11, "etcdserver: mvcc: required revision has been compacted");
        },
        "/test.Echo/Reject": async () => {
          throw new StatusError(3, "ünicode 100%");
        },
        "/test.Echo/Crash": async () => {
          throw new TypeError("oops");
        },
      },
    });
    client.call(1, HELLO, { ":path": "/test.Echo/Throw" });
    client.call(3, HELLO, { ":path": "/test.Echo/Reject" });
    client.call(5, HELLO, { ":path": "/test.Echo/Crash" });
    await settle();
    assert.deepEqual(client.take(), [
      `HEADERS 1 ${HEADERS_OK} grpc-status=11 grpc-message=etcdserver: mvcc: required revision has been compacted end`,
      `HEADERS 3 ${HEADERS_OK} grpc-status=3 grpc-message=%C3%BCnicode 100%25 end`,
      `HEADERS 5 ${HEADERS_OK} grpc-status=2 grpc-message=oops end`,
    ]);
  });

  test("that is not as it should be ends with grpc-go's status", () => {
    const client = new GrpcClient({ unary: ECHO, grpcLimits: { maxRequestBytes: 100 } });
    const refused: readonly (readonly [
      body: Uint8Array,
      status: string,
      headers?: Record<string, string>,
    ])[] = [
      [new Uint8Array(0), "grpc-status=13 grpc-message=unexpected EOF"],
      [message(HELLO).slice(0, 7), "grpc-status=13 grpc-message=unexpected EOF"],
      [message(HELLO, 2), "grpc-status=13 grpc-message=grpc: received unexpected payload format 2"],
      [
        message(HELLO, 1),
        "grpc-status=13 grpc-message=grpc: compressed flag set with identity or empty encoding",
      ],
      [
        message(new Uint8Array(101)),
        "grpc-status=8 grpc-message=grpc: received message larger than max (101 vs. 100)",
      ],
      [
        concat([message(HELLO), message(HELLO)]),
        "grpc-status=13 grpc-message=more than one message in a call that takes one",
      ],
      [
        message(HELLO),
        "grpc-status=12 grpc-message=unknown method Such for service test.Echo",
        { ":path": "/test.Echo/Such" },
      ],
      [
        message(HELLO),
        "grpc-status=12 grpc-message=unknown service no.Such",
        { ":path": "/no.Such/Method" },
      ],
      [
        message(HELLO),
        "grpc-status=4 grpc-message=context deadline exceeded",
        { "grpc-timeout": "0S" },
      ],
      [
        message(HELLO),
        'grpc-status=12 grpc-message=grpc: Decompressor is not installed for grpc-encoding "snappy" grpc-accept-encoding=identity,gzip',
        { "grpc-encoding": "snappy" },
      ],
    ];
    let id = 1;
    for (const [body, status, headers] of refused) {
      client.send(client.headers(id, { ...CALL, ...headers }), data(id, body, true));
      assert.equal(client.take()[0], `HEADERS ${id} ${HEADERS_OK} ${status} end`);
      id += 2;
    }
    client.send(client.headers(id, { ...CALL, "grpc-timeout": "5 minutes" }, true));
    client.send(client.headers(id + 2, { ...CALL, ":method": "PUT" }, true));
    assert.deepEqual(client.take(), [
      `HEADERS ${id} :status=400 content-type=application/grpc grpc-status=13 grpc-message=malformed grpc-timeout: 5 minutes end`,
      `HEADERS ${id + 2} :status=405 content-type=application/grpc grpc-status=13 ` +
        `grpc-message=Received a HEADERS frame with :method "PUT" which should be POST end`,
    ]);
    assert.equal(client.shared.held.usedBytes, 0);
    assert.equal(client.connection.streams.size, 0);
  });

  test("hands its context to the service", () => {
    let seen: CallContext | undefined;
    const client = new GrpcClient({
      unary: {
        "/test.Echo/Now": (bytes, context) => {
          seen = context;
          return bytes;
        },
      },
    });
    client.call(1, HELLO, { token: "t1", "trace-bin": "AAEC/w", "grpc-timeout": "1500m" });
    assert.ok(seen);
    assert.equal(seen.path, "/test.Echo/Now");
    assert.equal(seen.metadata("token"), "t1");
    assert.equal(seen.metadata("trace-bin"), "\u0000\u0001\u0002\u00ff");
    assert.equal(seen.metadata("missing"), undefined);
    assert.equal(seen.deadlineMs, 1500);
    assert.equal(seen.peerAddress, "127.0.0.1:1");
    assert.equal(seen.cancelled, false);
  });

  test("is cancelled by its deadline, its client, or the end of the connection, and lingers until its service is done", async () => {
    const contexts: CallContext[] = [];
    const cancelled: string[] = [];
    const finish: (() => void)[] = [];
    const client = new GrpcClient({
      unary: {
        "/test.Echo/Now": (bytes, context) => {
          contexts.push(context);
          context.onCancel(() => cancelled.push(toLatin1(bytes)));
          return new Promise((resolve) => finish.push(() => resolve(bytes)));
        },
      },
    });
    client.call(1, fromLatin1("late"), { "grpc-timeout": "100m" });
    client.call(3, fromLatin1("reset"));
    client.call(5, fromLatin1("lost"));
    client.call(7, fromLatin1("done"));
    finish[3]();
    await settle();
    client.take();
    client.pass(99);
    assert.deepEqual(cancelled, []);
    client.pass(11);
    assert.deepEqual(client.take(), [
      `HEADERS 1 ${HEADERS_OK} grpc-status=4 grpc-message=context deadline exceeded end`,
    ]);
    client.send(rstStream(3));
    client.connection.lost();
    assert.deepEqual(cancelled, ["late", "reset", "lost"]);
    assert.deepEqual(
      contexts.map((one) => one.cancelled),
      [true, true, true, false],
    );
    assert.equal(client.connection.lingeringCalls, 3);
    assert.ok(client.shared.held.usedBytes > 0);
    let late = 0;
    contexts[0].onCancel(() => late++);
    assert.equal(late, 1, "at once, as it is cancelled");
    for (const one of finish) one();
    await settle();
    assert.equal(client.connection.lingeringCalls, 0);
    assert.equal(client.shared.held.usedBytes, 0);
    assert.deepEqual(client.take(), []);
  });

  test("that is reset and repeated does not get around the bound on streams", () => {
    let running = 0;
    const client = new GrpcClient({
      limits: { maxConcurrentStreams: 5 },
      unary: {
        "/test.Echo/Now": () => {
          running++;
          return new Promise(() => {});
        },
      },
    });
    for (let id = 1; id < 200; id += 2) {
      client.call(id, HELLO);
      client.send(rstStream(id));
    }
    assert.equal(running, 5);
    assert.equal(client.shared.counters.refusedStreams, 95);
  });

  test("goes out as the client's windows open, in the stored pieces themselves", () => {
    const piece = new Uint8Array(50_000).fill(9);
    const client = new GrpcClient({ unary: { "/test.Echo/Now": () => [piece, piece] } });
    client.send(settingsFrame([Setting.InitialWindowSize, 20_000]));
    client.take();
    client.call(1, HELLO);
    assert.deepEqual(client.take(), [`HEADERS 1 ${HEADERS_OK}`, "DATA 1 16384", "DATA 1 3616"]);
    client.send(windowUpdate(1, 1_000_000), windowUpdate(0, 1_000_000));
    const chunks = client.connection.takeOutput();
    assert.ok(
      chunks.filter((chunk) => chunk.buffer === piece.buffer).length >= 4,
      "what is large is not copied",
    );
    assert.equal(client.shared.pending.usedBytes, 0);
    assert.equal(client.connection.streams.size, 0);
  });

  test("too large an answer is an error of grpc-go's words", () => {
    const client = new GrpcClient({ unary: ECHO, grpcLimits: { maxResponseBytes: 4 } });
    client.call(1, HELLO);
    assert.deepEqual(client.take(), [
      `HEADERS 1 ${HEADERS_OK} grpc-status=8 grpc-message=grpc: trying to send message larger than max (5 vs. 4) end`,
    ]);
  });

  test("is compressed when it came compressed, at once or later, and refused when it is no gzip", async () => {
    const client = new GrpcClient({
      unary: { ...ECHO, "/test.Echo/Large": () => new Uint8Array(200_000) },
    });
    const encoding = { "grpc-encoding": "gzip" };
    const send = (id: number, body: Uint8Array, path: string) =>
      client.send(
        client.headers(id, { ...CALL, ...encoding, ":path": path }),
        data(id, body, true),
      );
    send(1, message(gzipSync(HELLO), 1), "/test.Echo/Now");
    let frames = client.takeFrames();
    assert.equal(frames[0].line, `HEADERS 1 ${HEADERS_OK} grpc-encoding=gzip`);
    assert.equal(frames[1].payload[0], 1);
    assert.deepEqual(toLatin1(gunzipSync(frames[1].payload.subarray(5))), "hello");
    // What came as it is may go compressed; nothing at all is not worth it.
    send(3, message(HELLO), "/test.Echo/Now");
    assert.equal(client.takeFrames()[1].payload[0], 1);
    send(5, message(new Uint8Array(0)), "/test.Echo/Now");
    assert.deepEqual(client.takeFrames()[1].payload, message(new Uint8Array(0)));
    send(7, message(HELLO), "/test.Echo/Large");
    assert.deepEqual(client.take(), []);
    client.compressor.release();
    await settle();
    frames = client.takeFrames();
    assert.equal(gunzipSync(frames[1].payload.subarray(5)).length, 200_000);
    // A client that has left by then is no trouble.
    send(9, message(HELLO), "/test.Echo/Large");
    client.send(rstStream(9));
    client.compressor.release();
    await settle();
    assert.deepEqual(client.take(), []);
    send(11, message(HELLO, 1), "/test.Echo/Now");
    assert.match(client.take()[0], /grpc-status=2 grpc-message=incorrect header check end$/);
  });

  test("is refused when requests hold too much, on one connection or on all", () => {
    const client = new GrpcClient({
      unary: ECHO,
      limits: { maxHeldBytes: 10_000 },
      maxHeldTotalBytes: 15_000,
    });
    const other = new GrpcClient({ unary: ECHO, shared: client.shared });
    const half = message(new Uint8Array(20_000)).slice(0, 6000);
    client.send(client.headers(1, CALL), data(1, half));
    client.send(client.headers(3, CALL), data(3, half));
    assert.deepEqual(client.take(), [
      `HEADERS 3 ${HEADERS_OK} grpc-status=8 grpc-message=grpc: requests being received hold too much memory end`,
      "RST_STREAM 3 NoError",
    ]);
    other.send(other.headers(1, CALL), data(1, half));
    assert.deepEqual(other.take(), []);
    other.send(other.headers(3, CALL), data(3, new Uint8Array(3500)));
    assert.match(other.take()[0], /^HEADERS 3 .*hold too much memory end$/);
    client.send(rstStream(1));
    other.call(5, new Uint8Array(3500));
    assert.equal(other.take().length, 3);
    assert.equal(client.shared.counters.heldBytesRefusals, 2);
    other.connection.lost();
    assert.equal(client.shared.held.usedBytes, 0);
  });

  test("waits for its turn while services work on too much already, and no longer", async () => {
    const finish: (() => void)[] = [];
    const client = new GrpcClient({
      unary: {
        "/test.Echo/Now": () => new Promise((resolve) => finish.push(() => resolve(HELLO))),
      },
      limits: { maxHeldBytes: 200_000, connectionWindowBytes: 65_535 },
    });
    const updates = (): string[] =>
      client.take().filter((line) => line.startsWith("WINDOW_UPDATE 0"));
    const body = new Uint8Array(12_000);
    for (let id = 1; id <= 17; id += 2) client.call(id, body);
    assert.equal(updates().length, 3);
    // More than half of the bound is held now: the window is opened no more.
    for (let id = 19; id <= 25; id += 2) client.call(id, body);
    assert.deepEqual(updates(), []);
    for (const one of finish) one();
    await settle();
    assert.deepEqual(updates(), ["WINDOW_UPDATE 0 48020"]);
    assert.equal(client.shared.held.usedBytes, 0);
    // Requests that are only coming in do not wait for each other.
    for (let id = 31; id <= 51; id += 2)
      client.send(
        client.headers(id, CALL),
        data(id, message(new Uint8Array(15_000)).slice(0, 14_000)),
      );
    assert.equal(updates().length, 3);
    assert.equal(client.shared.counters.heldBytesRefusals, 0);
  });

  test("is refused without an echo of the client's own words without end", () => {
    const client = new GrpcClient({ unary: ECHO });
    client.send(client.headers(1, { ...CALL, ":path": `/no.Such/${"x".repeat(4000)}` }, true));
    assert.ok(client.takeFrames()[0].payload.length < 700);
  });

  test("is an error when answers that wait hold too much", () => {
    const client = new GrpcClient({
      unary: { "/test.Echo/Now": () => new Uint8Array(60_000) },
      limits: { maxPendingBytes: 100_000 },
    });
    client.send(settingsFrame([Setting.InitialWindowSize, 0]));
    client.take();
    client.call(1, HELLO);
    client.call(3, HELLO);
    assert.deepEqual(client.take(), [
      `HEADERS 1 ${HEADERS_OK}`,
      `HEADERS 3 ${HEADERS_OK}`,
      "HEADERS 3 grpc-status=8 grpc-message=grpc: responses waiting to be sent hold too much memory end",
    ]);
    assert.equal(client.shared.counters.pendingBytesRefusals, 1);
    client.send(rstStream(1));
    assert.equal(client.shared.pending.usedBytes, 0);
  });

  test("is counted by the observer", async () => {
    const seen: string[] = [];
    const client = new GrpcClient({
      unary: {
        ...ECHO,
        "/test.Echo/Fail": async () => {
          throw new StatusError(5, "no");
        },
      },
      observer: {
        started: (path) => seen.push(`started ${path}`),
        handled: (path, code, startedMs) => seen.push(`handled ${path} ${code} ${startedMs}`),
        messageReceived: (path, size) => seen.push(`received ${path} ${size}`),
        messageSent: (path, size) => seen.push(`sent ${path} ${size}`),
      },
    });
    client.nowMs = 7;
    client.call(1, HELLO);
    client.call(3, HELLO, { ":path": "/test.Echo/Fail" });
    await settle();
    assert.deepEqual(seen, [
      "started /test.Echo/Now",
      "received /test.Echo/Now 5",
      "handled /test.Echo/Now 0 7",
      "sent /test.Echo/Now 5",
      "started /test.Echo/Fail",
      "received /test.Echo/Fail 5",
      "handled /test.Echo/Fail 5 7",
    ]);
  });
});

/** A stream whose listener writes down what it hears, and whose call the test has in its hand. */
function openStream(
  options: ConstructorParameters<typeof GrpcClient>[0] = {},
  headers: Record<string, string> = {},
  end = false,
) {
  const events: string[] = [];
  let call!: StreamCall;
  const client = new GrpcClient({
    ...options,
    stream: {
      "/test.Chat/Talk": (opened) => {
        call = opened;
        return {
          message: (bytes) =>
            events.push(`message ${bytes.length > 20 ? bytes.length : toLatin1(bytes)}`),
          halfClosed: () => events.push("half closed"),
          drained: () => events.push("drained"),
          cancelled: () => events.push("cancelled"),
        };
      },
    },
  });
  client.send(client.headers(1, { ...CALL, ":path": "/test.Chat/Talk", ...headers }, end));
  return { client, events, call };
}

describe("a stream", () => {
  test("carries messages both ways until the service ends it", () => {
    const { client, events, call } = openStream();
    client.send(
      data(1, concat([message(HELLO), message(fromLatin1("you")), message(HELLO).slice(0, 3)])),
    );
    assert.equal(call.send(HELLO), true);
    assert.equal(call.send([fromLatin1("a"), fromLatin1("b")]), true);
    assert.deepEqual(client.take(), [`HEADERS 1 ${HEADERS_OK}`, "DATA 1 10", "DATA 1 7"]);
    client.send(data(1, message(HELLO).slice(3)), data(1, 0, true));
    assert.deepEqual(events, ["message hello", "message you", "message hello", "half closed"]);
    call.end();
    assert.deepEqual(client.take(), ["HEADERS 1 grpc-status=0 end"]);
    assert.equal(call.send(HELLO), false);
    assert.equal(client.connection.streams.size, 0);
    assert.equal(client.shared.held.usedBytes, 0);
  });

  test("may end without a message, with a status, before the client does", () => {
    const { client, call } = openStream();
    call.end({ code: 14, message: "later" });
    assert.deepEqual(client.take(), [
      `HEADERS 1 ${HEADERS_OK} grpc-status=14 grpc-message=later end`,
      "RST_STREAM 1 NoError",
    ]);
    const { client: silent, call: second, events } = openStream({}, {}, true);
    assert.deepEqual(events, ["half closed"]);
    second.end();
    assert.deepEqual(silent.take(), [`HEADERS 1 ${HEADERS_OK} grpc-status=0 end`]);
  });

  test("ends with what its handler or listener throws", () => {
    const client = new GrpcClient({
      stream: {
        "/test.Chat/Throw": () => {
          throw new StatusError(7, "not you");
        },
        "/test.Chat/Later": () => ({
          message() {
            throw new Error("bad");
          },
        }),
        "/test.Chat/End": () => ({
          halfClosed() {
            throw new StatusError(9, "not now");
          },
        }),
      },
    });
    client.send(client.headers(1, { ...CALL, ":path": "/test.Chat/Throw" }, true));
    client.send(
      client.headers(3, { ...CALL, ":path": "/test.Chat/Later" }),
      data(3, concat([message(HELLO), message(HELLO)]), true),
    );
    client.send(client.headers(5, { ...CALL, ":path": "/test.Chat/End" }, true));
    assert.deepEqual(client.take(), [
      `HEADERS 1 ${HEADERS_OK} grpc-status=7 grpc-message=not you end`,
      `HEADERS 3 ${HEADERS_OK} grpc-status=2 grpc-message=bad end`,
      `HEADERS 5 ${HEADERS_OK} grpc-status=9 grpc-message=not now end`,
    ]);
  });

  test("notifies the service when its send budget is used up, and when half of it is free again", () => {
    const { client, events, call } = openStream();
    client.send(settingsFrame([Setting.InitialWindowSize, 0]));
    assert.equal(call.send(new Uint8Array(500)), true);
    assert.equal(call.send(new Uint8Array(500)), false);
    assert.equal(call.bufferedBytes, 1010);
    client.send(windowUpdate(1, 500));
    assert.deepEqual(events, []);
    client.send(windowUpdate(1, 10));
    assert.deepEqual(events, ["drained"]);
    assert.equal(call.bufferedBytes, 500);
    call.end();
    client.take();
    client.send(windowUpdate(1, 500));
    assert.deepEqual(client.take(), [
      "DATA 1 500",
      "HEADERS 1 grpc-status=0 end",
      "RST_STREAM 1 NoError",
    ]);
    assert.deepEqual(events, ["drained"]);
  });

  test("is cut off when its service goes on sending all the same", () => {
    const { client, events, call } = openStream({ limits: { maxPendingBytes: 3000 } });
    client.send(settingsFrame([Setting.InitialWindowSize, 0]));
    for (let i = 0; i < 5; i++) call.send(new Uint8Array(900));
    assert.equal(call.context.cancelled, true);
    assert.deepEqual(events, ["cancelled"]);
    client.send(windowUpdate(1, 10_000));
    assert.match(
      client.take().join("\n"),
      /HEADERS 1 grpc-status=8 grpc-message=grpc: responses waiting to be sent hold too much memory end/,
    );
    assert.equal(client.shared.pending.usedBytes, 0);
  });

  test("holds messages back while it is paused, and the client with them", () => {
    const { client, events, call } = openStream({ limits: { streamWindowBytes: 1000 } });
    call.pause();
    client.send(
      data(1, message(new Uint8Array(395))),
      data(1, message(new Uint8Array(395))),
      data(1, 0, true),
    );
    assert.deepEqual(events, []);
    assert.deepEqual(client.take(), []);
    assert.equal(client.shared.held.usedBytes, 800);
    call.resume();
    assert.deepEqual(events, ["message 395", "message 395", "half closed"]);
    assert.equal(client.shared.held.usedBytes, 0);
  });

  test("credits the window when it resumes, and as messages are consumed", () => {
    const { client, events, call } = openStream({ limits: { streamWindowBytes: 1000 } });
    call.pause();
    client.send(data(1, message(new Uint8Array(795))));
    assert.deepEqual(client.take(), []);
    call.resume();
    assert.deepEqual(client.take(), ["WINDOW_UPDATE 1 800"]);
    // A message that is larger than the window gets through as well.
    const large = message(new Uint8Array(1995));
    client.send(data(1, large.slice(0, 1000)));
    assert.deepEqual(client.take(), ["WINDOW_UPDATE 1 1000"]);
    client.send(data(1, large.slice(1000)));
    assert.deepEqual(events, ["message 795", "message 1995"]);
  });

  test("may be paused and resumed from within a message", () => {
    const events: string[] = [];
    const client = new GrpcClient({
      stream: {
        "/test.Chat/Talk": (call) => ({
          message(bytes) {
            events.push(toLatin1(bytes));
            call.pause();
            if (events.length < 3) call.resume();
          },
        }),
      },
    });
    const four = concat(["a", "b", "c", "d"].map((text) => message(fromLatin1(text))));
    client.send(client.headers(1, { ...CALL, ":path": "/test.Chat/Talk" }), data(1, four));
    assert.deepEqual(events, ["a", "b", "c"]);
  });

  test("is cancelled by its client, its deadline and the end of the connection", () => {
    const reset = openStream();
    reset.client.send(data(1, message(HELLO).slice(0, 4)), rstStream(1));
    assert.deepEqual(reset.events, ["cancelled"]);
    assert.equal(reset.call.context.cancelled, true);
    assert.equal(reset.client.shared.held.usedBytes, 0);
    const late = openStream({}, { "grpc-timeout": "1S" });
    late.client.pass(1010);
    assert.deepEqual(late.events, ["cancelled"]);
    assert.match(late.client.take()[0], /grpc-status=4/);
    const lost = openStream();
    lost.call.send(HELLO);
    lost.client.connection.lost();
    assert.deepEqual(lost.events, ["cancelled"]);
    assert.equal(lost.call.send(HELLO), false);
    lost.call.end();
  });

  test("is compressed when the client compresses", () => {
    const { client, events, call } = openStream({}, { "grpc-encoding": "gzip" });
    client.send(data(1, concat([message(gzipSync(HELLO), 1), message(fromLatin1("plain"))])));
    assert.deepEqual(events, ["message hello", "message plain"]);
    client.send(settingsFrame([Setting.InitialWindowSize, MIB]), windowUpdate(0, MIB));
    call.send(fromUtf8("a"));
    // Larger than what is compressed at once: it goes as it is, in its turn.
    call.send(new Uint8Array(150_000));
    call.send(fromUtf8("b"));
    const [first, large, last] = messagesOf(client, 1);
    assert.equal(toLatin1(gunzipSync(first.subarray(5))), "a");
    assert.ok(equals(large, message(new Uint8Array(150_000))));
    assert.equal(toLatin1(gunzipSync(last.subarray(5))), "b");
  });

  test("that breaks off within a message is an error", () => {
    const { client } = openStream();
    client.send(data(1, message(HELLO).slice(0, 7), true));
    assert.deepEqual(client.take(), [
      `HEADERS 1 ${HEADERS_OK} grpc-status=13 grpc-message=unexpected EOF end`,
    ]);
  });
});

describe("what is no gRPC", () => {
  test("goes to the HTTP handler, with its body, and is answered", async () => {
    const seen: unknown[] = [];
    const client = new GrpcClient({
      http: (request) => {
        seen.push([
          request.method,
          request.path,
          request.query,
          Object.fromEntries(request.headers),
          toLatin1(request.body),
        ]);
        return request.method === "POST"
          ? Promise.resolve({
              status: 201,
              headers: { "X-Own": "1", connection: "close" },
              body: "made\n",
            })
          : { status: 200, headers: { "content-type": "text/plain" }, body: "fine\n" };
      },
    });
    client.send(client.headers(1, { ...GET, ":path": "/health?a=b", accept: "*/*" }, true));
    assert.deepEqual(client.take(), [
      `HEADERS 1 :status=200 content-length=5 content-type=text/plain date=${DATE}`,
      "DATA 1 5 end",
    ]);
    client.send(client.headers(3, { ...GET, ":method": "HEAD" }, true));
    assert.deepEqual(client.take(), [
      `HEADERS 3 :status=200 content-length=5 content-type=text/plain date=${DATE} end`,
    ]);
    client.send(
      client.headers(5, {
        ...GET,
        ":method": "POST",
        host: "other",
        "content-type": "application/grpc-web",
      }),
    );
    client.send(data(5, fromLatin1("bo")), data(5, fromLatin1("dy"), true));
    await settle();
    assert.deepEqual(client.take(), [
      `HEADERS 5 :status=201 content-length=5 x-own=1 date=${DATE}`,
      "DATA 5 5 end",
    ]);
    assert.deepEqual(seen, [
      ["GET", "/health", "a=b", { accept: "*/*", host: "test" }, ""],
      ["HEAD", "/", "", { host: "test" }, ""],
      ["POST", "/", "", { host: "other", "content-type": "application/grpc-web" }, "body"],
    ]);
    assert.equal(client.shared.held.usedBytes, 0);
  });

  test("joins fields of one name, and cookies in their way", () => {
    let headers: ReadonlyMap<string, string> = new Map();
    const client = new GrpcClient({
      http: (request) => {
        headers = request.headers;
        return { status: 204, headers: {}, body: "" };
      },
    });
    const fields = [
      ...Object.entries(GET),
      ["a", "1"],
      ["cookie", "x=1"],
      ["a", "2"],
      ["cookie", "y=2"],
    ];
    const block = client.encoder.encode(fields.map(([name, value]) => ({ name, value })));
    client.send(concat([Uint8Array.of(0, 0, block.length, 1, 5, 0, 0, 0, 1), block]));
    assert.equal(headers.get("a"), "1, 2");
    assert.equal(headers.get("cookie"), "x=1; y=2");
    assert.deepEqual(client.take(), [`HEADERS 1 :status=204 date=${DATE} end`]);
  });

  test("has a handler that fails, a body that is too large, or headers that are", async () => {
    const client = new GrpcClient({
      http: async () => {
        throw new Error("oops");
      },
      maxHttpBodyBytes: 10,
      limits: { maxHeaderListBytes: 500 },
    });
    client.send(client.headers(1, GET, true));
    await settle();
    assert.match(client.take()[0], /^HEADERS 1 :status=500 /);
    client.send(client.headers(3, { ...GET, ":method": "PUT" }), data(3, 11));
    const lines = client.take();
    assert.match(lines[0], /^HEADERS 3 :status=413 /);
    assert.equal(lines.at(-1), "RST_STREAM 3 NoError");
    client.send(client.headers(5, { ...GET, big: "x".repeat(500) }, true));
    assert.match(client.take()[0], /^HEADERS 5 :status=431 /);
    client.send(client.headers(7, { ...CALL, big: "x".repeat(500) }, true));
    assert.match(
      client.take()[0],
      /^HEADERS 7 :status=431 .* grpc-status=8 grpc-message=grpc: received header list larger than max end$/,
    );
  });

  test("is refused where only gRPC is served, and the other way round", () => {
    const grpc = new GrpcClient({ serves: "grpc" });
    grpc.send(grpc.headers(1, { ...GET, "content-type": "text/html" }, true));
    assert.deepEqual(grpc.take(), [
      'HEADERS 1 :status=415 content-type=application/grpc grpc-status=3 grpc-message=invalid gRPC request content-type "text/html" end',
    ]);
    const http = new GrpcClient({ serves: "http", unary: ECHO });
    http.call(1, HELLO);
    assert.match(http.take()[0], /^HEADERS 1 :status=404 /);
  });
});
