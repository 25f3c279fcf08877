import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { status } from "@grpc/grpc-js";
import { StatusError, type StreamCall } from "@quorate/rpc";
import { clientStream, collect, duplex, serverStream } from "./helpers/calls.ts";
import { Flag, FrameClient, FrameType, frame, grpcMessage } from "./helpers/frames.ts";
import { deferred, startServer } from "./helpers/server.ts";

const HELLO = Buffer.from("hello");

describe("a stream", () => {
  it("from the server carries its messages in order, then its status", async (t) => {
    const { client } = await startServer(t, {
      stream: {
        "/test.Stream/Count": (call) => ({
          message(bytes) {
            for (let i = 0; i < bytes[0]; i++) call.send(Buffer.from([i]));
            call.end();
          },
        }),
        "/test.Stream/Fail": (call) => ({
          message(bytes) {
            call.send(bytes);
            call.end({ code: status.UNAVAILABLE, message: "etcdserver: no leader" });
          },
        }),
        "/test.Stream/Refuse": () => {
          throw new StatusError(status.UNAUTHENTICATED, "etcdserver: invalid auth token");
        },
        "/test.Stream/Empty": (call) => ({ halfClosed: () => call.end() }),
      },
    });
    const caller = client();
    const counted = await collect(serverStream(caller, "/test.Stream/Count", Buffer.from([200])));
    assert.deepEqual(
      counted.messages,
      Array.from({ length: 200 }, (_, i) => Buffer.from([i])),
    );
    assert.equal(counted.status.code, status.OK);
    const failed = await collect(serverStream(caller, "/test.Stream/Fail", HELLO));
    assert.deepEqual(failed, {
      messages: [HELLO],
      status: { code: status.UNAVAILABLE, details: "etcdserver: no leader" },
    });
    const refused = await collect(serverStream(caller, "/test.Stream/Refuse", HELLO));
    assert.deepEqual(refused, {
      messages: [],
      status: { code: status.UNAUTHENTICATED, details: "etcdserver: invalid auth token" },
    });
    assert.deepEqual((await collect(serverStream(caller, "/test.Stream/Empty", HELLO))).status, {
      code: 0,
      details: "",
    });
  });

  it("from the client is answered when it is complete, or before", async (t) => {
    const { client } = await startServer(t, {
      stream: {
        "/test.Stream/Sum": (call) => {
          let sum = 0;
          return {
            message: (bytes) => (sum += bytes.length),
            halfClosed() {
              call.send(Buffer.from(String(sum)));
              call.end();
            },
          };
        },
        "/test.Stream/Enough": (call) => ({
          message: () => call.end({ code: status.OUT_OF_RANGE, message: "enough" }),
        }),
      },
    });
    const caller = client();
    const sum = clientStream(caller, "/test.Stream/Sum");
    for (let i = 0; i < 50; i++) sum.call.write(Buffer.alloc(1000));
    sum.call.end();
    assert.equal(String(await sum.answer), "50000");
    const enough = clientStream(caller, "/test.Stream/Enough");
    enough.call.on("error", () => {});
    enough.call.write(HELLO);
    assert.deepEqual(await enough.answer, { code: status.OUT_OF_RANGE, details: "enough" });
  });

  it("in both directions goes on as long as both like", async (t) => {
    const { client } = await startServer(t, {
      stream: {
        "/test.Stream/Echo": (call) => ({
          message: (bytes) => void call.send(bytes),
          halfClosed: () => call.end(),
        }),
      },
    });
    const call = duplex(client(), "/test.Stream/Echo");
    for (let i = 0; i < 20; i++) {
      const answer = new Promise<Buffer>((resolve) => call.once("data", resolve));
      call.write(Buffer.from([i]));
      assert.deepEqual(await answer, Buffer.from([i]));
    }
    const rest = collect(call);
    call.end();
    assert.equal((await rest).status.code, status.OK);
  });

  it("ends with an error of its listener, or of a message", async (t) => {
    const { client } = await startServer(t, {
      options: { maxRequestBytes: 100 },
      stream: {
        "/test.Stream/Throw": () => ({
          message() {
            throw new StatusError(status.INVALID_ARGUMENT, "bad");
          },
          halfClosed() {
            throw new Error("worse");
          },
        }),
      },
    });
    const caller = client();
    const first = duplex(caller, "/test.Stream/Throw");
    const firstEnd = collect(first);
    first.write(HELLO);
    assert.deepEqual((await firstEnd).status, { code: status.INVALID_ARGUMENT, details: "bad" });
    const second = duplex(caller, "/test.Stream/Throw");
    const secondEnd = collect(second);
    second.end();
    assert.deepEqual((await secondEnd).status, { code: status.UNKNOWN, details: "worse" });
    const third = duplex(caller, "/test.Stream/Throw");
    const thirdEnd = collect(third);
    third.write(Buffer.alloc(101));
    const details = "grpc: received message larger than max (101 vs. 100)";
    assert.deepEqual((await thirdEnd).status, { code: status.RESOURCE_EXHAUSTED, details });
  });

  it("notifies its service of a cancellation, of the deadline and of a lost connection", async (t) => {
    const calls: StreamCall[] = [];
    const opened: (() => void)[] = [];
    const heard: (() => void)[] = [];
    const { client, clock, port } = await startServer(t, {
      stream: {
        "/test.Stream/Wait": (call) => {
          calls.push(call);
          call.send(HELLO);
          opened.shift()?.();
          return { cancelled: () => heard.shift()?.() };
        },
      },
    });
    const wait = (list: (() => void)[]) => {
      const { promise, resolve } = deferred();
      list.push(resolve);
      return promise;
    };
    const caller = client();
    const cancelled = duplex(caller, "/test.Stream/Wait");
    cancelled.on("error", () => {});
    await wait(opened);
    cancelled.cancel();
    await wait(heard);

    const expiring = duplex(caller, "/test.Stream/Wait", { deadline: Date.now() + 3_600_000 });
    const end = collect(expiring);
    await wait(opened);
    const reported = wait(heard);
    clock.advance(3_600_001);
    await reported;
    assert.deepEqual((await end).status, {
      code: status.DEADLINE_EXCEEDED,
      details: "context deadline exceeded",
    });

    const lost = new FrameClient(port);
    lost.open(1, "/test.Stream/Wait");
    await wait(opened);
    const gone = wait(heard);
    lost.socket.destroy();
    await gone;

    for (const call of calls) {
      assert.equal(call.context.cancelled, true);
      assert.equal(call.send(HELLO), false, "nothing can be sent any more");
      assert.equal(call.bufferedBytes, 0);
    }
  });

  it("says when more than its budget waits, holds no more than it was given, and says when to go on", async (t) => {
    const started = deferred<StreamCall>();
    let drained = deferred();
    const budget = 200_000;
    const { client } = await startServer(t, {
      options: { sendBudgetBytes: budget },
      stream: {
        "/test.Stream/Flood": (call) => {
          started.resolve(call);
          return { drained: () => drained.resolve() };
        },
      },
    });
    const stream = duplex(client(), "/test.Stream/Flood");
    stream.pause();
    const call = await started.promise;
    const message = Buffer.alloc(50_000, 1);
    let sent = 0;
    let rounds = 0;
    // The client does not read: what its window and the sockets take is bounded, so at last the
    // budget stays full.
    const fill = () => {
      while (call.send(message)) sent++;
      sent++;
    };
    fill();
    assert.ok(
      call.bufferedBytes > budget && call.bufferedBytes <= budget + message.length + 5 + 50,
      `${call.bufferedBytes} bytes`,
    );
    let received = 0;
    stream.on("data", (bytes: Buffer) => {
      assert.deepEqual(bytes, message);
      received++;
    });
    stream.resume();
    while (rounds++ < 5) {
      await drained.promise;
      assert.ok(call.bufferedBytes <= budget / 2);
      drained = deferred();
      fill();
    }
    const end = new Promise<{ code: number }>((resolve) => stream.on("status", resolve));
    call.end();
    assert.equal((await end).code, status.OK);
    assert.equal(received, sent);
  });

  it("stops taking messages in while it is paused, and misses none", async (t) => {
    const started = deferred<StreamCall>();
    const closed = deferred();
    const got: number[] = [];
    const { port } = await startServer(t, {
      options: { receiveWindowBytes: 65_535 },
      stream: {
        "/test.Stream/Pause": (call) => {
          call.pause();
          started.resolve(call);
          return {
            message(bytes) {
              got.push(Buffer.from(bytes).readUInt32BE(0));
              if (got.length % 10 !== 0) return;
              call.pause();
              setImmediate(() => call.resume());
            },
            halfClosed: () => closed.resolve(),
          };
        },
      },
    });
    const client = new FrameClient(port);
    t.after(() => client.socket.destroy());
    client.open(1, "/test.Stream/Pause");
    const call = await started.promise;
    const windowUpdates = () =>
      client.frames
        .filter((one) => one.type === FrameType.WindowUpdate && one.streamId === 1)
        .map((one) => one.payload.readUInt32BE(0));
    const messages = Array.from({ length: 65 }, (_, i) => {
      const message = Buffer.alloc(1000);
      message.writeUInt32BE(i);
      return grpcMessage(message);
    });
    client.send(...messages.map((message) => frame(FrameType.Data, 0, 1, message)));
    await client.settled(1);
    assert.deepEqual(got, [], "nothing comes in");
    assert.deepEqual(windowUpdates(), [], "and the client may send no more than the window");
    call.resume();
    await client.frame((one) => one.type === FrameType.WindowUpdate && one.streamId === 1);
    client.send(frame(FrameType.Data, Flag.EndStream, 1));
    await closed.promise;
    assert.deepEqual(
      got,
      Array.from({ length: 65 }, (_, i) => i),
    );
    call.end();
    await client.frame((one) => one.streamId === 1 && (one.flags & Flag.EndStream) !== 0);
  });
});
