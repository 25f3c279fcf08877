/**
 * EngineServer with real sockets and real clients: @grpc/grpc-js, node:http2, curl, and none at
 * all.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { describe, type TestContext, test } from "node:test";
import { compressionAlgorithms, credentials, status } from "@grpc/grpc-js";
import { leaveStaleSocket, ManualClock } from "@quorate/host/testing";
import { concat } from "@quorate/proto";
import { type CallContext, StatusError, type StreamCall } from "@quorate/rpc";
import { makeAuthority, makeLocalCertificate } from "../../../test/support/certs.ts";
import { endsWith } from "../../../test/support/children.ts";
import { EngineSocket, SocketContext } from "../node/engine/engine-socket.ts";
import { HpackEncoder, Indexing } from "../src/hpack/hpack.ts";
import { Flag, FrameType, PREFACE, Setting } from "../src/http2/constants.ts";
import {
  CoreClient,
  data,
  fieldsOf,
  frame,
  MIB,
  settingsFrame,
  sharedOf,
  windowUpdate,
} from "./engine/core.ts";
import { CALL, GrpcClient, message } from "./engine/grpc.ts";
import { Recorder } from "./engine/recorder.ts";
import { clientStream, collect, duplex, serverStream, unary } from "./helpers/calls.ts";
import { type ServerUnderTest, startServer } from "./helpers/server.ts";
import { unchanged, until } from "./helpers/until.ts";

const HELLO = Buffer.from("hello");
const PREFACE_BYTES = Buffer.from(PREFACE, "latin1");
const ECHO: ServerUnderTest = { unary: { "/test.Echo/Now": (bytes) => bytes } };

const CA = makeAuthority();
const SERVER = makeLocalCertificate(CA, "server");
const TLS = { certPem: SERVER.certPem, keyPem: SERVER.keyPem };

describe("@grpc/grpc-js", () => {
  test("gets messages of every size around a frame, a window and the limit", async (t) => {
    const { client } = await startServer(t, ECHO);
    const caller = client();
    for (const size of [0, 5, 16_379, 16_380, 65_535, 65_536, MIB, 2 * MIB]) {
      const bytes = Buffer.alloc(size, size & 0xff);
      const answer = await unary(caller, "/test.Echo/Now", bytes);
      assert.ok(Buffer.isBuffer(answer) && answer.equals(bytes), `${size} bytes`);
    }
    const details = `grpc: received message larger than max (${2 * MIB + 1} vs. ${2 * MIB})`;
    assert.deepEqual(await unary(caller, "/test.Echo/Now", Buffer.alloc(2 * MIB + 1)), {
      code: status.RESOURCE_EXHAUSTED,
      details,
    });
    assert.deepEqual(await unary(caller, "/test.Echo/Now", HELLO), HELLO);
  });

  test("gets a thousand answers at once, in any order", async (t) => {
    const { client } = await startServer(t, {
      unary: {
        "/test.Echo/Now": async (bytes) => {
          for (let turns = bytes[0] % 5; turns > 0; turns--)
            await new Promise((resolve) => setImmediate(resolve));
          return bytes;
        },
      },
    });
    const caller = client();
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, i) =>
        unary(caller, "/test.Echo/Now", Buffer.from([i, i >> 8])),
      ),
    );
    for (const [i, answer] of answers.entries()) assert.deepEqual(answer, Buffer.from([i, i >> 8]));
  });

  test("gets statuses, metadata across and compressed messages", async (t) => {
    let seen: CallContext | undefined;
    const { client } = await startServer(t, {
      unary: {
        "/test.Echo/Now": (bytes, context) => {
          seen = context;
          return bytes;
        },
        "/test.Echo/Fail": async () => {
          throw new StatusError(9, "etcdserver: ünicode 100%\n");
        },
      },
    });
    const caller = client();
    await unary(caller, "/test.Echo/Now", HELLO, {
      metadata: { token: "t1", "trace-bin": Buffer.from([0, 255]) },
    });
    assert.equal(seen?.metadata("token"), "t1");
    assert.equal(seen?.metadata("trace-bin"), "\u0000\u00ff");
    assert.deepEqual(await unary(caller, "/test.Echo/Fail", HELLO), {
      code: 9,
      details: "etcdserver: ünicode 100%\n",
    });
    assert.deepEqual(await unary(caller, "/test.Echo/None", HELLO), {
      code: status.UNIMPLEMENTED,
      details: "unknown method None for service test.Echo",
    });
    const gzip = client({ "grpc.default_compression_algorithm": compressionAlgorithms.gzip });
    const text = Buffer.alloc(300_000, "compressible ");
    const answer = await unary(gzip, "/test.Echo/Now", text);
    assert.ok(Buffer.isBuffer(answer) && answer.equals(text));
  });

  test("streams in every direction", async (t) => {
    const { client } = await startServer(t, {
      stream: {
        "/test.Chat/Talk": (call) => ({
          message: (bytes) => void call.send(bytes),
          halfClosed: () => call.end(),
        }),
        "/test.Chat/Count": (call) => ({
          message(bytes) {
            for (let i = 0; i < bytes[0]; i++) call.send(Uint8Array.of(i));
            call.end({ code: 10, message: "enough" });
          },
        }),
        "/test.Chat/Sum": (call) => {
          let sum = 0;
          return {
            message: (bytes) => void (sum += bytes.length),
            halfClosed() {
              call.send(Buffer.from(String(sum)));
              call.end();
            },
          };
        },
      },
    });
    const caller = client();
    const talk = duplex(caller, "/test.Chat/Talk");
    const all = collect(talk);
    for (let i = 0; i < 100; i++) talk.write(Buffer.alloc(i * 100, i));
    talk.end();
    const { messages, status: end } = await all;
    assert.equal(messages.length, 100);
    assert.ok(messages.every((one, i) => one.equals(Buffer.alloc(i * 100, i))));
    assert.deepEqual(end, { code: 0, details: "" });
    const counted = await collect(serverStream(caller, "/test.Chat/Count", Buffer.from([50])));
    assert.equal(counted.messages.length, 50);
    assert.deepEqual(counted.status, { code: 10, details: "enough" });
    const { call, answer } = clientStream(caller, "/test.Chat/Sum");
    for (let i = 0; i < 30; i++) call.write(Buffer.alloc(100_000));
    call.end();
    assert.equal(String(await answer), "3000000");
  });

  test("is held back by a service that pauses, and holds one back by not reading", async (t) => {
    const calls: StreamCall[] = [];
    let received = 0;
    const { client, server } = await startServer(t, {
      options: { receiveWindowBytes: 65_535, sendBudgetBytes: 100_000 },
      stream: {
        "/test.Chat/Talk": (call) => {
          calls.push(call);
          return { message: () => void received++, halfClosed: () => call.end() };
        },
      },
    });
    const talk = duplex(client(), "/test.Chat/Talk");
    talk.write(HELLO);
    await until(() => received === 1);
    calls[0].pause();
    for (let i = 0; i < 40; i++) talk.write(Buffer.alloc(10_000));
    await until(() => server.counters().heldBytes > 60_000);
    assert.equal(received, 1);
    assert.ok(server.counters().heldBytes <= 65_535);
    calls[0].resume();
    await until(() => received === 41);
    let sent = 0;
    while (calls[0].send(Buffer.alloc(10_000))) sent++;
    assert.ok(sent < 300, `${sent} messages went before the budget was used up`);
    assert.ok(calls[0].bufferedBytes > 100_000);
    const all = collect(talk);
    talk.end();
    assert.equal((await all).messages.length, sent + 1);
  });

  test("observes deadlines, and its own cancels arrive", async (t) => {
    const { promise: cancelled, resolve } = Promise.withResolvers<void>();
    const { client, clock, server } = await startServer(t, {
      unary: {
        "/test.Echo/Wait": (_bytes, context) => {
          context.onCancel(() => resolve());
          return new Promise(() => {});
        },
      },
      stream: { "/test.Chat/Talk": () => ({ cancelled: () => resolve() }) },
    });
    const caller = client();
    const answer = unary(caller, "/test.Echo/Wait", HELLO, {
      call: { deadline: Date.now() + 60_000 },
    });
    await until(() => server.counters().http2.openStreams === 1);
    clock.advance(60_010);
    await cancelled;
    assert.deepEqual(await answer, {
      code: status.DEADLINE_EXCEEDED,
      details: "context deadline exceeded",
    });
    const talk = duplex(caller, "/test.Chat/Talk");
    talk.on("error", () => {});
    await until(() => server.counters().http2.openStreams === 1);
    talk.cancel();
    await until(() => server.counters().http2.openStreams === 0);
    assert.equal(server.counters().http2.resetsReceived, 1);
  });

  test("speaks TLS", async (t) => {
    const { client } = await startServer(t, { ...ECHO, tls: TLS });
    const secure = credentials.createSsl(Buffer.from(CA.certPem));
    const caller = client({ "grpc.ssl_target_name_override": "localhost" }, secure);
    const large = Buffer.alloc(MIB, 7);
    const answer = await unary(caller, "/test.Echo/Now", large);
    assert.ok(Buffer.isBuffer(answer) && answer.equals(large));
    const many = await Promise.all(
      Array.from({ length: 100 }, (_, i) => unary(caller, "/test.Echo/Now", Buffer.alloc(i * 100))),
    );
    assert.equal(many.filter((one) => Buffer.isBuffer(one)).length, 100);
  });
});

describe("node:http2", () => {
  test("gets plain answers, with bodies both ways, many at a time", async (t) => {
    const { port } = await startServer(t, {
      http: async (request) => ({
        status: 200,
        headers: { "x-path": request.path },
        body: concat([request.body, request.body]),
      }),
    });
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    t.after(() => session.destroy());
    const fetchOne = (i: number): Promise<string> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ":path": `/p${i}`, ":method": "POST" });
        const chunks: Buffer[] = [];
        let head = "";
        stream.on("response", (headers) => (head = `${headers[":status"]} ${headers["x-path"]}`));
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => resolve(`${head} ${Buffer.concat(chunks).length}`));
        stream.on("error", reject);
        stream.end(Buffer.alloc(i * 1000));
      });
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => fetchOne(i)));
    assert.deepEqual(
      answers,
      Array.from({ length: 100 }, (_, i) => `200 /p${i} ${i * 2000}`),
    );
  });

  test("lives with an early answer to a body that goes on", async (t) => {
    const { port } = await startServer(t, { maxHttpBodyBytes: 1000 });
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    t.after(() => session.destroy());
    const stream = session.request({ ":path": "/", ":method": "POST" });
    const { promise, resolve } = Promise.withResolvers<unknown>();
    stream.on("response", (headers) => resolve(headers[":status"]));
    stream.on("error", () => {});
    stream.resume();
    stream.write(Buffer.alloc(500_000));
    assert.equal(await promise, 413);
    await new Promise((closed) => stream.on("close", closed));
    assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR);
    const pinged = Promise.withResolvers<void>();
    session.ping(() => pinged.resolve());
    await pinged.promise;
  });
});

/** curl's output for these arguments, or undefined where there is no curl with HTTP/2. */
async function curl(...args: string[]): Promise<string> {
  const child = endsWith(
    spawn("curl", ["-sS", "-i", "--max-time", "60", ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk) => chunks.push(chunk));
  await new Promise((resolve) => child.on("close", resolve));
  return Buffer.concat(chunks).toString().replaceAll("\r", "");
}

const curlVersion = spawnSync("curl", ["--version"], { encoding: "utf8" });
const noCurl =
  curlVersion.status === 0 && curlVersion.stdout.includes("HTTP2")
    ? false
    : "no curl with HTTP/2 is installed";

describe("curl", { skip: noCurl }, () => {
  const http: ServerUnderTest["http"] = (one) => ({
    status: 200,
    headers: {},
    body: `${one.method} ${one.path} ${one.body.length}\n`,
  });

  test("over HTTP/1.1 and HTTP/2 on one port", async (t) => {
    const { port } = await startServer(t, { ...ECHO, http });
    assert.match(
      await curl(`http://127.0.0.1:${port}/a`),
      /^HTTP\/1\.1 200 OK\n[\s\S]*\n\nGET \/a 0\n$/,
    );
    assert.match(
      await curl("--http2-prior-knowledge", `http://127.0.0.1:${port}/b`),
      /^HTTP\/2 200 \n[\s\S]*\n\nGET \/b 0\n$/,
    );
    assert.match(
      await curl(
        "--http2-prior-knowledge",
        "-d",
        "x".repeat(100_000),
        `http://127.0.0.1:${port}/c`,
      ),
      /POST \/c 100000\n$/,
    );
  });

  test("over TLS, where ALPN picks HTTP/2 or HTTP/1.1", async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "engine-"));
    t.after(() => rmSync(directory, { recursive: true }));
    const ca = join(directory, "ca.pem");
    writeFileSync(ca, CA.certPem);
    const { port } = await startServer(t, { http, tls: TLS });
    assert.match(
      await curl(
        "--cacert",
        ca,
        `https://localhost:${port}/a`,
        "--resolve",
        `localhost:${port}:127.0.0.1`,
      ),
      /^HTTP\/2 200 /,
    );
    assert.match(
      await curl("--http1.1", "--cacert", ca, `https://127.0.0.1:${port}/b`),
      /^HTTP\/1\.1 200 OK\n/,
    );
    assert.match(
      await curl("--no-alpn", "--cacert", ca, `https://127.0.0.1:${port}/c`),
      /^HTTP\/1\.1 200 OK\n/,
    );
  });

  test("over a unix socket, also where an old one lies", async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "engine-"));
    t.after(() => rmSync(directory, { recursive: true }));
    const path = join(directory, "socket");
    leaveStaleSocket(path);
    await startServer(t, { http, options: { listen: [{ path, secure: false }] } });
    assert.match(
      await curl("--unix-socket", path, "--http2-prior-knowledge", "http://localhost/a"),
      /GET \/a 0\n$/,
    );
  });
});

describe("HTTP/1.1", () => {
  test("is answered in turn on one connection, and broken requests end it", async (t) => {
    const { socket } = await startServer(t, {
      http: (one) => ({ status: 200, headers: {}, body: one.path }),
    });
    const first = await socket();
    let text = "";
    first.on("data", (chunk) => (text += chunk));
    first.write("GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\n\r\n");
    await until(() => text.includes("/a") && text.includes("/b"));
    first.write("GET /c HTTP/1.1\r\nbad header\r\n\r\n");
    await until(() => text.includes("400 Bad Request"));
    await new Promise((resolve) => first.on("close", resolve));
    const strange = await socket();
    strange.on("data", () => assert.fail("what is no HTTP gets no HTTP"));
    strange.write("SSH-2.0-OpenSSH_9.2p1\r\n");
    await new Promise((resolve) => strange.on("close", resolve));
  });

  test("that does not come to an end is cut off", async (t) => {
    const { socket, clock, server } = await startServer(t, {});
    const slow = await socket();
    let text = "";
    slow.on("data", (chunk) => (text += chunk));
    slow.write("GET / HTTP/1.1\r\nhost: x\r\n");
    await until(() => server.counters().http1.openConnections === 1);
    clock.advance(10_000);
    await new Promise((resolve) => slow.on("close", resolve));
    assert.match(text, /^HTTP\/1\.1 408 Request Timeout/);
  });
});

/** Sends calls for large answers and reads nothing. */
function greedy(client: GrpcClient, calls: number): Uint8Array {
  const open = Array.from({ length: calls }, (_, i) => [
    client.headers(1 + 2 * i, { ...CALL, ":path": "/test.Echo/Large" }),
    data(1 + 2 * i, message(HELLO), true),
  ]);
  return concat([
    PREFACE_BYTES,
    settingsFrame([Setting.InitialWindowSize, 2 ** 31 - 1]),
    windowUpdate(0, 2 ** 31 - 70_000),
    ...open.flat(),
  ]);
}

describe("hostile sockets", () => {
  const large = Buffer.alloc(MIB);
  const services: ServerUnderTest = { unary: { ...ECHO.unary, "/test.Echo/Large": () => large } };

  test("one that does not read is held up, its neighbour is not, and it is cut off after a time", async (t) => {
    const { socket, client, server, clock } = await startServer(t, {
      ...services,
      options: { maxConnectionMemoryMib: 16, limits: { sendStallTimeoutMs: 60_000 } },
    });
    const slow = await socket();
    slow.pause();
    slow.write(greedy(new GrpcClient(), 100));
    await until(() => server.counters().http2.pendingBytesRefusals > 0);
    const caller = client();
    assert.deepEqual(await unary(caller, "/test.Echo/Now", HELLO), HELLO);
    assert.ok(server.counters().pendingBytes <= 16 * MIB);
    await unchanged(() => server.counters().pendingBytes);
    clock.advance(59_000);
    await unchanged(() => server.counters().pendingBytes);
    assert.equal(server.counters().activeConnections, 2);
    clock.advance(2_000);
    await until(() => server.counters().activeConnections === 1);
    const { stalledConnections, http2, pendingBytes } = server.counters();
    assert.deepEqual([stalledConnections, http2.sendStalls], [1, 0]);
    assert.equal(pendingBytes, 0);
    assert.deepEqual(await unary(caller, "/test.Echo/Now", HELLO), HELLO);
  });

  for (const [why, limits] of Object.entries({
    "because it has much to take": { maxOutputBytes: 65_536, outputTargetBytes: 16_384 },
    "because all of them have": { maxOutputBytes: 1e9, maxUnsentTotalBytes: 100_000 },
  })) {
    test(`one that asks and asks and does not read is not read either, ${why}`, async (t) => {
      const { socket, client, server } = await startServer(t, {
        ...services,
        options: { grpcKeepAliveMinTimeMs: 0, limits },
      });
      const slow = await socket();
      slow.pause();
      slow.write(concat([PREFACE_BYTES, settingsFrame()]));
      // A few bytes each, refused with a text that the client never reads.
      const encoder = new HpackEncoder();
      const fields = fieldsOf({ ...CALL, ":path": `/no.Such/${"x".repeat(2000)}` }).map(
        (field) => ({ ...field, indexing: Indexing.Add }),
      );
      let id = 1;
      const request = (): Uint8Array => {
        const one = frame(
          FrameType.Headers,
          Flag.EndHeaders | Flag.EndStream,
          id,
          encoder.encode(fields),
        );
        id += 2;
        return one;
      };
      // Until the server takes fewer than it is sent.
      while (server.counters().http2.streams === (id - 1) / 2) {
        slow.write(concat(Array.from({ length: 5000 }, request)));
        await unchanged(() => server.counters().http2.streams);
        assert.ok(id < 1_000_000, "the server reads without end");
      }
      assert.ok(server.counters().unsentBytes > 65_000);
      assert.ok(
        server.counters().unsentBytes < 5 * MIB,
        `${server.counters().unsentBytes} bytes wait`,
      );
      assert.deepEqual(await unary(client(), "/test.Echo/Now", HELLO), HELLO);
      slow.destroy();
      await until(() => server.counters().unsentBytes === 0);
    });
  }

  test("one that says nothing, or not enough, or that opens no TLS, is closed in time", async (t) => {
    const { socket, clock, server } = await startServer(t, ECHO);
    const silent = await socket();
    const halting = await socket();
    halting.write("PRI");
    const prefaced = await socket();
    prefaced.write(PREFACE_BYTES);
    await until(
      () =>
        server.counters().http2.openConnections === 1 && server.counters().activeConnections === 3,
    );
    clock.advance(9_000);
    assert.equal(server.counters().activeConnections, 3);
    clock.advance(1_001);
    for (const one of [silent, halting, prefaced]) {
      one.resume();
      if (!one.closed) await new Promise((resolve) => one.on("close", resolve));
    }
    assert.equal(server.counters().silentConnections, 2);
    assert.equal(server.counters().http2.prefaceTimeouts, 1);
    const secure = await startServer(t, { ...ECHO, tls: TLS });
    const quiet = await secure.socket();
    quiet.resume();
    await until(() => secure.server.counters().activeConnections === 1);
    secure.clock.advance(10_001);
    await new Promise((resolve) => quiet.on("close", resolve));
    assert.equal(secure.server.counters().handshakeTimeouts, 1);
    assert.equal(secure.server.counters().failedHandshakes, 1);
  });

  test("one too many is closed once it has said what it speaks, if all others are busy", async (t) => {
    const { socket, server, client } = await startServer(t, {
      stream: { "/test.Chat/Talk": () => ({}) },
      options: { maxConnections: 2 },
    });
    const busy = client().makeBidiStreamRequest(
      "/test.Chat/Talk",
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
    );
    busy.on("error", () => {});
    await until(() => server.counters().http2.openStreams === 1);
    const late = await socket();
    late.resume();
    late.write(concat([PREFACE_BYTES, settingsFrame()]));
    await new Promise((resolve) => late.on("close", resolve));
    assert.equal(server.counters().refusedConnections, 1);
    busy.cancel();
    await until(() => server.counters().http2.openStreams === 0);
    const next = await socket();
    next.write(concat([PREFACE_BYTES, settingsFrame()]));
    await until(() => server.counters().displacedConnections === 1);
  });

  test("one that breaks a rule gets GOAWAY before it is closed", async (t) => {
    const { socket } = await startServer(t, ECHO);
    const client = await socket();
    const chunks: Buffer[] = [];
    client.on("data", (chunk: Buffer) => chunks.push(chunk));
    client.write(concat([PREFACE_BYTES, settingsFrame(), data(1, 5)]));
    await new Promise((resolve) => client.on("close", resolve));
    assert.match(Buffer.concat(chunks).toString("latin1"), /DATA on an idle stream$/);
  });
});

describe("closing", () => {
  test("notifies the clients, lets open calls end, and takes no new connection", async (t) => {
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<Buffer>();
    const { client, server, port, socket } = await startServer(t, {
      unary: {
        "/test.Echo/Slow": () => {
          started.resolve();
          return finish.promise;
        },
      },
    });
    const caller = client();
    const answer = unary(caller, "/test.Echo/Slow", HELLO);
    await started.promise;
    const idle = await socket();
    idle.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await new Promise((resolve) => idle.once("data", resolve));
    const closed = server.close(60_000);
    await new Promise((resolve) => idle.on("close", resolve));
    const refused = connect(port, "127.0.0.1");
    await new Promise((resolve) => refused.on("error", resolve));
    finish.resolve(HELLO);
    assert.deepEqual(await answer, HELLO);
    await closed;
    assert.equal(server.counters().activeConnections, 0);
  });

  test("cuts off what is left after the grace", async (t) => {
    const { client, server, clock } = await startServer(t, {
      unary: { "/test.Echo/Slow": () => new Promise(() => {}) },
    });
    const answer = unary(client(), "/test.Echo/Slow", HELLO);
    await until(() => server.counters().http2.openStreams === 1);
    const closed = server.close(1000);
    clock.advance(1000);
    await closed;
    const failed = await answer;
    assert.ok(!Buffer.isBuffer(failed) && failed.code === status.UNAVAILABLE);
  });
});

/** A stream that counts its writes and hands nothing on. */
class CountingSocket extends Duplex {
  writes = 0;
  chunks = 0;
  override _read(): void {}
  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes++;
    this.chunks++;
    done();
  }
  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.writes++;
    this.chunks += chunks.length;
    done();
  }
}

function counting(t: TestContext): {
  socket: CountingSocket;
  client: CoreClient;
  recorder: Recorder;
  engine: EngineSocket;
} {
  const socket = new CountingSocket();
  const recorder = new Recorder();
  const context = new SocketContext(sharedOf({}), new ManualClock(), MIB);
  const engine = new EngineSocket(
    context,
    socket as never,
    recorder,
    { peerAddress: "@", peerCommonName: undefined },
    () => {},
  );
  t.after(() => socket.destroy());
  return { socket, client: new CoreClient(recorder), recorder, engine };
}

test("a turn's answers leave in one write, large pieces as they are", async (t) => {
  const { socket, client, recorder, engine } = counting(t);
  await new Promise((resolve) => setImmediate(resolve));
  socket.writes = 0;
  socket.chunks = 0;
  const requests = Array.from({ length: 100 }, (_, i) => client.headers(1 + 2 * i, CALL, true));
  socket.push(
    concat([
      PREFACE_BYTES,
      settingsFrame([Setting.InitialWindowSize, MIB]),
      windowUpdate(0, MIB),
      ...requests,
    ]),
  );
  await until(() => recorder.streams.size === 100);
  const { connection } = engine;
  for (const stream of recorder.streams.values()) {
    connection.sender.headers(
      stream,
      { fields: [{ name: ":status", value: "200" }], constant: false },
      stream.id > 1,
    );
    connection.touched();
  }
  connection.sender.data(
    recorder.streams.get(1)!,
    [Buffer.alloc(8000), Buffer.alloc(8000)],
    16_000,
    "plain",
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(socket.writes, 1);
  assert.equal(socket.chunks, 3);
});
