import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { status } from "@grpc/grpc-js";
import { type CallContext, StatusError } from "@quorate/rpc";
import { unary } from "./helpers/calls.ts";
import { Flag, FrameClient, FrameType, frame, grpcMessage } from "./helpers/frames.ts";
import { deferred, startServer } from "./helpers/server.ts";

const KIB = 1024;
const HELLO = Buffer.from("hello");

describe("a unary call", () => {
  it("is answered, at once or later", async (t) => {
    const { client } = await startServer(t, {
      unary: {
        "/test.Echo/Now": (bytes) => bytes,
        "/test.Echo/Later": async (bytes) => [bytes.subarray(0, 2), bytes.subarray(2)],
      },
    });
    const caller = client();
    assert.deepEqual(await unary(caller, "/test.Echo/Now", HELLO), HELLO);
    assert.deepEqual(await unary(caller, "/test.Echo/Later", HELLO), HELLO);
    assert.deepEqual(await unary(caller, "/test.Echo/Now", Buffer.alloc(0)), Buffer.alloc(0));
  });

  it("carries messages of every size around a frame, a window and the limit", async (t) => {
    const { client } = await startServer(t, { unary: { "/test.Echo/Now": (bytes) => bytes } });
    const caller = client();
    for (const size of [
      16 * KIB - 5,
      16 * KIB,
      16 * KIB + 1,
      65_535,
      65_536,
      KIB * KIB,
      2 * KIB * KIB,
    ]) {
      const bytes = Buffer.alloc(size, size & 0xff);
      const answer = await unary(caller, "/test.Echo/Now", bytes);
      assert.ok(Buffer.isBuffer(answer) && answer.equals(bytes), `${size} bytes`);
    }
  });

  it("is refused when its message is too long, as grpc-go says it", async (t) => {
    const { client } = await startServer(t, {
      unary: { "/test.Echo/Now": (bytes) => bytes },
      options: { maxRequestBytes: 1000 },
    });
    const caller = client();
    const details = "grpc: received message larger than max (1001 vs. 1000)";
    assert.deepEqual(await unary(caller, "/test.Echo/Now", Buffer.alloc(1001)), {
      code: status.RESOURCE_EXHAUSTED,
      details,
    });
    assert.deepEqual(await unary(caller, "/test.Echo/Now", Buffer.alloc(1000)), Buffer.alloc(1000));
  });

  it("ends with the status that its service throws", async (t) => {
    const { client } = await startServer(t, {
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
    const caller = client();
    const compacted = "etcdserver: mvcc: required revision has been compacted";
    assert.deepEqual(await unary(caller, "/test.Echo/Throw", HELLO), {
      code: status.OUT_OF_RANGE,
      details: compacted,
    });
    assert.deepEqual(await unary(caller, "/test.Echo/Reject", HELLO), {
      code: status.INVALID_ARGUMENT,
      details: "ünicode 100%",
    });
    assert.deepEqual(await unary(caller, "/test.Echo/Crash", HELLO), {
      code: status.UNKNOWN,
      details: "oops",
    });
  });

  it("of a method that is not there is UNIMPLEMENTED", async (t) => {
    const { client } = await startServer(t, {
      unary: { "/etcdserverpb.KV/Put": (bytes) => bytes },
    });
    const caller = client();
    const details = "unknown method Foo for service etcdserverpb.KV";
    assert.deepEqual(await unary(caller, "/etcdserverpb.KV/Foo", HELLO), {
      code: status.UNIMPLEMENTED,
      details,
    });
    assert.deepEqual(await unary(caller, "/no.Such/Method", HELLO), {
      code: status.UNIMPLEMENTED,
      details: "unknown service no.Such",
    });
  });

  it("hands its context to the service", async (t) => {
    const seen: Record<string, unknown> = {};
    const { client, clock, port } = await startServer(t, {
      unary: {
        "/test.Echo/Context": (bytes, context) => {
          Object.assign(seen, {
            path: context.path,
            token: context.metadata("token"),
            binary: context.metadata("trace-bin"),
            missing: context.metadata("missing"),
            peer: context.peerAddress,
            name: context.peerCommonName,
            deadlineMs: context.deadlineMs,
            cancelled: context.cancelled,
          });
          return bytes;
        },
      },
    });
    clock.advance(1000);
    const metadata = { token: "simple", "trace-bin": Buffer.from([0, 255, 7]) };
    assert.deepEqual(await unary(client(), "/test.Echo/Context", HELLO, { metadata }), HELLO);
    assert.match(String(seen["peer"]), /^127\.0\.0\.1:\d+$/);
    assert.notEqual(seen["peer"], `127.0.0.1:${port}`);
    delete seen["peer"];
    assert.deepEqual(seen, {
      path: "/test.Echo/Context",
      token: "simple",
      binary: "\x00\xff\x07",
      missing: undefined,
      name: undefined,
      deadlineMs: undefined,
      cancelled: false,
    });
    await unary(client(), "/test.Echo/Context", HELLO, { call: { deadline: Date.now() + 60_000 } });
    const left = Number(seen["deadlineMs"]) - clock.monotonicMs();
    assert.ok(left > 50_000 && left <= 60_000, `${left} ms left`);
  });

  it("ends at its deadline by the server's clock, and its service hears of it", async (t) => {
    const started = deferred<CallContext>();
    const heard = deferred();
    const { client, clock } = await startServer(t, {
      unary: {
        "/test.Echo/Never": (_bytes, context) => {
          context.onCancel(heard.resolve);
          started.resolve(context);
          return new Promise(() => {});
        },
      },
    });
    const answer = unary(client(), "/test.Echo/Never", HELLO, {
      call: { deadline: Date.now() + 3_600_000 },
    });
    const context = await started.promise;
    clock.advance(3_590_000);
    assert.equal(context.cancelled, false);
    clock.advance(20_000);
    assert.deepEqual(await answer, {
      code: status.DEADLINE_EXCEEDED,
      details: "context deadline exceeded",
    });
    await heard.promise;
    assert.equal(context.cancelled, true);
    let late = false;
    context.onCancel(() => {
      late = true;
    });
    assert.ok(late, "a listener that is added late is called at once");
  });

  it("is cancelled when its client gives up or goes away", async (t) => {
    const heard: string[] = [];
    const starts = [deferred(), deferred()];
    const ends = [deferred(), deferred()];
    const { client, port } = await startServer(t, {
      unary: {
        "/test.Echo/Never": (bytes, context) => {
          const i = bytes[0];
          context.onCancel(() => {
            heard.push(`${i} ${context.cancelled}`);
            ends[i].resolve();
          });
          starts[i].resolve();
          return new Promise(() => {});
        },
      },
    });
    const caller = client();
    const same = (bytes: Buffer) => bytes;
    const call = caller.makeUnaryRequest(
      "/test.Echo/Never",
      same,
      same,
      Buffer.from([0]),
      () => {},
    );
    await starts[0].promise;
    call.cancel();
    await ends[0].promise;
    const lost = new FrameClient(port);
    lost.open(1, "/test.Echo/Never");
    lost.send(frame(FrameType.Data, Flag.EndStream, 1, grpcMessage(Buffer.from([1]))));
    await starts[1].promise;
    lost.socket.destroy();
    await ends[1].promise;
    assert.deepEqual(heard, ["0 true", "1 true"]);
  });

  it("does not report a cancellation after its end", async (t) => {
    let cancelled = 0;
    const { client, clock } = await startServer(t, {
      unary: {
        "/test.Echo/Now": (bytes, context) => {
          context.onCancel(() => cancelled++);
          return bytes;
        },
      },
    });
    const caller = client();
    await unary(caller, "/test.Echo/Now", HELLO, { call: { deadline: Date.now() + 60_000 } });
    clock.advance(120_000);
    caller.close();
    await unary(client(), "/test.Echo/Now", HELLO);
    assert.equal(cancelled, 0);
  });

  it("may be compressed with gzip", async (t) => {
    const { client } = await startServer(t, {
      unary: { "/test.Echo/Now": (bytes) => bytes },
      options: { maxRequestBytes: 100_000 },
    });
    const caller = client({ "grpc.default_compression_algorithm": 2 });
    const bytes = Buffer.alloc(100_000, "quorate ");
    assert.deepEqual(await unary(caller, "/test.Echo/Now", bytes), bytes);
    assert.deepEqual(await unary(caller, "/test.Echo/Now", Buffer.alloc(100_001)), {
      code: status.RESOURCE_EXHAUSTED,
      details: "grpc: received message after decompression larger than max 100000",
    });
  });

  it("is refused in an encoding that is not known", async (t) => {
    const { client } = await startServer(t, { unary: { "/test.Echo/Now": (bytes) => bytes } });
    const answer = await unary(
      client({ "grpc.default_compression_algorithm": 1 }),
      "/test.Echo/Now",
      HELLO,
    );
    const details = 'grpc: Decompressor is not installed for grpc-encoding "deflate"';
    assert.deepEqual(answer, { code: status.UNIMPLEMENTED, details });
  });

  it("is counted", async (t) => {
    const seen: string[] = [];
    const { client, server, clock } = await startServer(t, {
      unary: {
        "/test.Echo/Now": (bytes) => [bytes, bytes],
        "/test.Echo/Fail": () => {
          throw new StatusError(9, "no");
        },
      },
      observer: {
        started: (path) => seen.push(`started ${path}`),
        handled: (path, code, startedMs) => seen.push(`handled ${path} ${code} ${startedMs}`),
        messageReceived: (path, size) => seen.push(`received ${path} ${size}`),
        messageSent: (path, size) => seen.push(`sent ${path} ${size}`),
      },
    });
    clock.advance(5);
    const caller = client();
    await unary(caller, "/test.Echo/Now", HELLO);
    await unary(caller, "/test.Echo/Fail", HELLO);
    await unary(caller, "/test.Echo/Unknown", HELLO);
    assert.deepEqual(seen, [
      "started /test.Echo/Now",
      "received /test.Echo/Now 5",
      "handled /test.Echo/Now 0 5",
      "sent /test.Echo/Now 10",
      "started /test.Echo/Fail",
      "received /test.Echo/Fail 5",
      "handled /test.Echo/Fail 9 5",
    ]);
    const { activeConnections, acceptedConnections } = server.counters();
    assert.deepEqual([activeConnections, acceptedConnections], [1, 1]);
  });
});
