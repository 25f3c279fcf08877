import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { Flag, FrameClient, FrameType, frame, grpcMessage } from "./helpers/frames.ts";
import { deferred, startServer } from "./helpers/server.ts";

const HELLO = Buffer.from("hello");
const ECHO = { unary: { "/test.Echo/Now": (bytes: Uint8Array) => bytes } };

interface Answer {
  readonly httpStatus: number | undefined;
  readonly code: string | undefined;
  readonly message: string | undefined;
  readonly accepted: string | undefined;
}

/** What a request by node:http2 is answered with. */
async function ask(
  port: number,
  headers: Record<string, string>,
  body: Uint8Array,
): Promise<Answer> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const stream = session.request({
    ":method": "POST",
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  const seen: Record<string, unknown> = {};
  stream.on("response", (received) => Object.assign(seen, received));
  stream.on("trailers", (received) => Object.assign(seen, received));
  stream.on("error", () => {});
  stream.resume();
  stream.end(body);
  await new Promise((resolve) => stream.on("close", resolve));
  session.destroy();
  return {
    httpStatus: seen[":status"] as number | undefined,
    code: seen["grpc-status"] as string | undefined,
    message: seen["grpc-message"] as string | undefined,
    accepted: seen["grpc-accept-encoding"] as string | undefined,
  };
}

function rawClient(t: TestContext, port: number): FrameClient {
  const client = new FrameClient(port);
  t.after(() => client.socket.destroy());
  return client;
}

describe("requests that are not as they should be", () => {
  const path = { ":path": "/test.Echo/Now" };
  const cases: [string, Record<string, string>, Uint8Array, Partial<Answer>][] = [
    [
      "no message",
      path,
      Buffer.alloc(0),
      { httpStatus: 200, code: "13", message: "unexpected EOF" },
    ],
    [
      "half a message",
      path,
      grpcMessage(HELLO).subarray(0, 8),
      { code: "13", message: "unexpected EOF" },
    ],
    [
      "two messages",
      path,
      Buffer.concat([grpcMessage(HELLO), grpcMessage(HELLO)]),
      { code: "13", message: "more than one message in a call that takes one" },
    ],
    [
      "a flag that is not known",
      path,
      grpcMessage(HELLO, 7),
      { code: "13", message: "grpc: received unexpected payload format 7" },
    ],
    [
      "a compressed message without an encoding",
      path,
      grpcMessage(gzipSync(HELLO), 1),
      { code: "13", message: "grpc: compressed flag set with identity or empty encoding" },
    ],
    [
      "a compressed message that is none",
      { ...path, "grpc-encoding": "gzip" },
      grpcMessage(HELLO, 1),
      { code: "13", message: "grpc: failed to decompress the message: incorrect header check" },
    ],
    [
      "an unknown encoding",
      { ...path, "grpc-encoding": "snappy" },
      grpcMessage(HELLO),
      {
        code: "12",
        message: 'grpc: Decompressor is not installed for grpc-encoding "snappy"',
        accepted: "identity,gzip",
      },
    ],
    [
      "a malformed timeout",
      { ...path, "grpc-timeout": "5x" },
      grpcMessage(HELLO),
      { httpStatus: 400, code: "13" },
    ],
    [
      "a timeout of nothing",
      { ...path, "grpc-timeout": "0m" },
      grpcMessage(HELLO),
      { code: "4", message: "context deadline exceeded" },
    ],
    [
      "another method",
      { ...path, ":method": "PUT" },
      grpcMessage(HELLO),
      { httpStatus: 405, code: "13" },
    ],
    [
      "a path that is none",
      { ":path": "/nothing" },
      grpcMessage(HELLO),
      { code: "12", message: 'malformed method name: "/nothing"' },
    ],
    [
      "a path without its slash, which is another text for rules about paths",
      { ":path": "test.Echo/Now" },
      grpcMessage(HELLO),
      { code: "12", message: 'malformed method name: "test.Echo/Now"' },
    ],
  ];
  for (const [name, headers, body, expected] of cases) {
    it(`with ${name}`, async (t) => {
      const { port } = await startServer(t, ECHO);
      const answer = await ask(port, headers, body);
      for (const [key, value] of Object.entries(expected))
        assert.equal(answer[key as keyof Answer], value, key);
    });
  }
});

describe("a call", () => {
  it("may trail off after its one message", async (t) => {
    const { port } = await startServer(t, ECHO);
    const client = rawClient(t, port);
    client.open(1, "/test.Echo/Now");
    for (const byte of grpcMessage(HELLO))
      client.send(frame(FrameType.Data, 0, 1, Buffer.from([byte])));
    await client.settled(1);
    client.send(frame(FrameType.Data, Flag.EndStream, 1));
    const data = await client.frame((one) => one.streamId === 1 && one.type === FrameType.Data);
    assert.deepEqual(data.payload, grpcMessage(HELLO));
    const last = await client.frame(
      (one) => one.streamId === 1 && (one.flags & Flag.EndStream) !== 0,
    );
    assert.equal(last.type, FrameType.Headers);
  });
});

describe("pings", () => {
  it("that come too often end the connection with too_many_pings", async (t) => {
    const { port } = await startServer(t, {
      stream: { "/test.Stream/Wait": () => ({}) },
      options: { grpcKeepAliveMinTimeMs: 5000 },
    });
    const client = rawClient(t, port);
    client.open(1, "/test.Stream/Wait");
    for (let i = 0; i < 4; i++) client.send(frame(FrameType.Ping, 0, 0, Buffer.alloc(8, i)));
    const goaway = await client.frame((one) => one.type === FrameType.GoAway);
    assert.equal(goaway.payload.readUInt32BE(4), 11, "ENHANCE_YOUR_CALM");
    assert.equal(goaway.payload.subarray(8).toString(), "too_many_pings");
    await client.closed;
  });

  it("as often as allowed, or between answers, are fine", async (t) => {
    const { port, clock } = await startServer(t, {
      ...ECHO,
      stream: { "/test.Stream/Wait": () => ({}) },
      options: { grpcKeepAliveMinTimeMs: 5000 },
    });
    const client = rawClient(t, port);
    client.open(1, "/test.Stream/Wait");
    for (let i = 0; i < 10; i++) {
      await client.settled(i);
      clock.advance(5001);
    }
    for (let i = 0; i < 10; i++) {
      const id = 3 + 2 * i;
      client.open(id, "/test.Echo/Now");
      client.send(frame(FrameType.Data, Flag.EndStream, id, grpcMessage(HELLO)));
      await client.frame((one) => one.streamId === id && (one.flags & Flag.EndStream) !== 0);
      await client.settled(100 + i);
    }
    assert.equal(
      client.frames.find((one) => one.type === FrameType.GoAway),
      undefined,
    );
  });

  it("without a call may come every two hours", async (t) => {
    const { port, clock } = await startServer(t, ECHO);
    const client = rawClient(t, port);
    await client.settled(1);
    clock.advance(2 * 3_600_000);
    await client.settled(2);
    for (let i = 3; i < 6; i++) {
      clock.advance(60_000);
      client.send(frame(FrameType.Ping, 0, 0, Buffer.alloc(8, i)));
    }
    await client.frame((one) => one.type === FrameType.GoAway);
  });
});

describe("a connection", () => {
  it("may take its time byte by byte, in either protocol, but not for ever", async (t) => {
    const { port, clock } = await startServer(t, {
      ...ECHO,
      http: () => ({ status: 200, headers: {}, body: "fine\n" }),
    });
    const slow = async (text: string): Promise<Buffer> => {
      const socket = connect(port, "127.0.0.1");
      socket.setNoDelay(true);
      const answer = new Promise<Buffer>((resolve) => socket.once("data", resolve));
      for (const char of text) {
        await new Promise((resolve) => socket.write(char, resolve));
        await new Promise((resolve) => setImmediate(resolve));
      }
      t.after(() => socket.destroy());
      return answer;
    };
    assert.match(
      String(await slow("GET /x HTTP/1.1\r\nhost: x\r\n\r\n")),
      /^HTTP\/1\.1 200 OK\r\n/,
    );
    assert.match(
      String(await slow("PUT /x HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")),
      /^HTTP\/1\.1 200 OK\r\n/,
    );
    assert.equal(
      (await slow("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"))[3],
      FrameType.Settings,
    );
    const silent = connect(port, "127.0.0.1");
    const closed = new Promise((resolve) => silent.on("close", resolve));
    silent.resume();
    await new Promise((resolve) => silent.write("PRI", resolve));
    // The server has seen the connection when it has answered a later one.
    await rawClient(t, port).settled(1);
    clock.advance(10_001);
    await closed;
  });

  it("yields to a newer one when it is idle and there are too many, with GOAWAY", async (t) => {
    const { port, server } = await startServer(t, { ...ECHO, options: { maxConnections: 5 } });
    const clients = [];
    for (let i = 0; i < 6; i++) {
      clients.push(rawClient(t, port));
      await clients[i].settled(1);
    }
    // Four may be open; the two that came first have gone.
    await Promise.all([clients[0].closed, clients[1].closed]);
    await clients[5].settled(2);
    const { displacedConnections, refusedConnections, http2 } = server.counters();
    assert.deepEqual([displacedConnections, refusedConnections, http2.shedConnections], [2, 0, 2]);
  });
});

describe("closing", () => {
  it("cuts off what is left after the grace", async (t) => {
    const cancelled = deferred();
    const opened = deferred();
    const { port, server, clock } = await startServer(t, {
      stream: {
        "/test.Stream/Wait": () => {
          opened.resolve();
          return { cancelled: () => cancelled.resolve() };
        },
      },
    });
    const client = rawClient(t, port);
    client.open(1, "/test.Stream/Wait");
    await opened.promise;
    const closed = server.close(1000);
    await client.frame((one) => one.type === FrameType.GoAway);
    clock.advance(999);
    assert.equal(server.counters().activeConnections, 1);
    clock.advance(1);
    await closed;
    await cancelled.promise;
    await client.closed;
    assert.equal(clock.nextDueMs(), undefined, "no timer is left");
  });
});
