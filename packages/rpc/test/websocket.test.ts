/** WebSocket on the engine: the client of the library ws, and frames that no library sends. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import type { HttpExchangeHandler, HttpTunnel } from "@quorate/host";
import { MemoryExchange } from "@quorate/host/testing";
import { ABNORMAL_CLOSURE, type ServerWebSocket, serveWebSocket } from "@quorate/rpc/node";
import { WebSocket } from "ws";
import { type RunningServer, startServer } from "./helpers/server.ts";
import { unchanged, until } from "./helpers/until.ts";

const MAX_MESSAGE_BYTES = 100_000;
const HANDSHAKE =
  "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

interface Bed extends RunningServer {
  readonly sockets: ServerWebSocket[];
  readonly received: string[];
  readonly codes: number[];
}

/** A server that echoes, for tests of this file. */
async function start(
  t: TestContext,
  { sendBudgetBytes, limits }: { sendBudgetBytes?: number; limits?: object } = {},
): Promise<Bed> {
  const sockets: ServerWebSocket[] = [];
  const received: string[] = [];
  const codes: number[] = [];
  const exchange: HttpExchangeHandler = (one) => {
    const socket = serveWebSocket(one, {
      maxMessageBytes: MAX_MESSAGE_BYTES,
      headers: { "sec-websocket-protocol": "Bearer" },
      onMessage(bytes, isBinary) {
        const text = Buffer.from(bytes).toString();
        if (text === "throw") throw new Error("thrown on purpose");
        received.push(text.slice(0, 100));
        if (!text.startsWith("quiet")) socket?.send(isBinary ? bytes : text, isBinary);
      },
      onClose: (code) => void codes.push(code),
    });
    if (socket !== undefined) sockets.push(socket);
    return {};
  };
  const engine = await startServer(t, { exchange, options: { sendBudgetBytes, limits } });
  return { ...engine, sockets, received, codes };
}

function client(t: TestContext, { port }: Bed): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, ["Bearer", "x"]);
  socket.on("error", () => {});
  t.after(() => socket.terminate());
  return new Promise((resolve) => socket.on("open", () => resolve(socket)));
}

/** A masked frame; the mask is 0, so that the payload is as it is. */
function frame(first: number, payload: Uint8Array, lengthText?: readonly number[]): Buffer {
  const size = payload.length;
  const length = lengthText ?? (size < 126 ? [size] : [126, size >> 8, size & 255]);
  return Buffer.from([first, length[0] | 0x80, ...length.slice(1), 0, 0, 0, 0, ...payload]);
}

/** A raw client behind its handshake, and the bytes that it receives from then on. */
async function raw(bed: Bed): Promise<{ socket: Socket; bytes: () => Buffer }> {
  const socket = await bed.socket();
  let bytes: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
  });
  socket.write(HANDSHAKE);
  const headEnd = () => bytes.indexOf("\r\n\r\n");
  await until(() => headEnd() > 0);
  assert.match(bytes.toString("latin1"), /^HTTP\/1\.1 101 Switching Protocols\r\n/);
  assert.match(bytes.toString("latin1"), /sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/);
  const start = headEnd() + 4;
  return { socket, bytes: () => bytes.subarray(start) };
}

describe("a WebSocket", () => {
  test("carries text and bytes both ways, pings, and closes with the client's code", async (t) => {
    const bed = await start(t);
    const one = await client(t, bed);
    assert.equal(one.protocol, "Bearer");
    const echoed: string[] = [];
    one.on("message", (data, isBinary) => echoed.push(`${isBinary} ${String(data).length}`));
    one.send("hello");
    one.send(Buffer.alloc(70_000, 1));
    one.send("");
    await until(() => echoed.length === 3);
    assert.deepEqual(echoed, ["false 5", "true 70000", "false 0"]);
    const pong = new Promise((resolve) => one.on("pong", resolve));
    const ping = new Promise((resolve) => one.on("ping", resolve));
    one.ping("are you there");
    bed.sockets[0].ping();
    assert.equal(String(await pong), "are you there");
    await ping;
    one.close(4001, "enough");
    await until(() => bed.codes.length === 1);
    assert.deepEqual(bed.codes, [4001]);
    await until(() => bed.server.counters().http1.openConnections === 0);
    assert.equal(bed.server.counters().http1.openRequests, 0);
    assert.equal(bed.server.counters().http1.upgrades, 1);
  });

  test("is closed by the server with a code and a reason; after a throw with 1011", async (t) => {
    const bed = await start(t);
    const first = await client(t, bed);
    const ended = (one: WebSocket) =>
      new Promise((resolve) => one.on("close", (code, why) => resolve(`${code} ${why}`)));
    const closed = ended(first);
    bed.sockets[0].close(4000, "r".repeat(200));
    bed.sockets[0].close(4002);
    assert.equal(bed.sockets[0].send("late"), false);
    assert.equal(await closed, `4000 ${"r".repeat(123)}`);
    const second = await client(t, bed);
    const thrown = ended(second);
    second.send("throw");
    assert.equal(await thrown, "1011 internal server error");
    const third = await client(t, bed);
    third.terminate();
    await until(() => bed.codes.length === 3);
    assert.deepEqual(bed.codes, [4000, 1011, ABNORMAL_CLOSURE]);
  });

  test("delivers nothing while it is paused, and the rest in order", async (t) => {
    const bed = await start(t);
    const one = await client(t, bed);
    one.send("quiet 0");
    await until(() => bed.received.length === 1);
    bed.sockets[0].pause();
    for (let i = 1; i <= 1000; i++) one.send(`quiet ${i}`);
    one.ping();
    bed.sockets[0].resume();
    await until(() => bed.received.length === 1001);
    assert.deepEqual(
      bed.received,
      Array.from({ length: 1001 }, (_, i) => `quiet ${i}`),
    );
  });

  test("whose client does not read is not read either, and is cut off after a time", async (t) => {
    const bed = await start(t, { sendBudgetBytes: 1000 });
    const { socket } = await raw(bed);
    socket.pause();
    const payload = Buffer.alloc(60_000, 97);
    const pump = () => {
      while (socket.write(frame(0x82, payload)));
    };
    socket.on("drain", pump);
    pump();
    const [server] = bed.sockets;
    await until(() => server.bufferedBytes > 0);
    await unchanged(() => bed.received.length);
    assert.ok(server.bufferedBytes < 1_000_000, `${server.bufferedBytes} bytes are buffered`);
    for (let second = 0; second < 130; second++) bed.clock.advance(1000);
    await until(() => bed.codes.length === 1);
    assert.deepEqual(bed.codes, [ABNORMAL_CLOSURE]);
    assert.equal(bed.server.counters().pendingBytes, 0);
    assert.equal(bed.server.counters().heldBytes, 0);
  });

  test("is refused to a request that is not a good handshake", async (t) => {
    const bed = await start(t);
    const cases: readonly (readonly [string, RegExp])[] = [
      [HANDSHAKE.replace("GET", "PUT"), /^HTTP\/1\.1 405 /],
      [HANDSHAKE.replace("Version: 13", "Version: 12"), /^HTTP\/1\.1 400 [\s\S]*version: 13\r\n/],
      [HANDSHAKE.replace("dGhl", "dG"), /^HTTP\/1\.1 400 /],
      [HANDSHAKE.replace("Upgrade: websocket\r\n", ""), /^HTTP\/1\.1 400 /],
      [HANDSHAKE.replace("Connection: Upgrade\r\n", ""), /^HTTP\/1\.1 400 /],
      [HANDSHAKE.replace("Host: x", "Host: x\r\nContent-Length: 1"), /^HTTP\/1\.1 400 /],
    ];
    for (const [request, expected] of cases) {
      const socket = await bed.socket();
      const answered = new Promise((resolve) => socket.once("data", resolve));
      socket.write(request);
      assert.match(String(await answered), expected, request);
      socket.destroy();
    }
  });
});

describe("frames that lie", () => {
  const huge = [127, 0, 0, 0, 1, 0, 0, 0, 0];
  const hostile: Readonly<Record<string, readonly [Uint8Array, number]>> = {
    "without a mask": [Buffer.from([0x81, 1, 97]), 1002],
    "a length of 2^32": [frame(0x82, Buffer.alloc(0), huge), 1009],
    "a length beyond 2^53": [frame(0x82, Buffer.alloc(0), [127, 255, 0, 0, 0, 0, 0, 0, 0]), 1009],
    "fragments that are too long together": [
      Buffer.concat([frame(0x02, Buffer.alloc(60_000)), frame(0x00, Buffer.alloc(60_000))]),
      1009,
    ],
    "a fragment flood": [
      Buffer.concat([frame(0x01, Buffer.alloc(0)), ...Array(5000).fill(frame(0, Buffer.alloc(0)))]),
      1008,
    ],
    "a continuation of nothing": [frame(0x80, Buffer.alloc(1)), 1002],
    "a reserved opcode": [frame(0x83, Buffer.alloc(1)), 1002],
    "a reserved bit": [frame(0xc1, Buffer.alloc(1)), 1002],
    "a long ping": [frame(0x89, Buffer.alloc(126)), 1002],
    "a close frame of one byte": [frame(0x88, Buffer.alloc(1)), 1002],
    "a close code that may not be sent": [frame(0x88, Buffer.from([0x03, 0xee])), 1002],
    "text that is not UTF-8": [frame(0x81, Buffer.from([0xff])), 1007],
  };
  test("close the connection with their code, and nothing is held", async (t) => {
    const bed = await start(t);
    for (const [name, [bytes, code]] of Object.entries(hostile)) {
      const { socket, bytes: got } = await raw(bed);
      socket.write(bytes);
      await until(() => got().length >= 4 || socket.destroyed);
      assert.deepEqual([got()[0], got().readUInt16BE(2)], [0x88, code], name);
      socket.destroy();
    }
    await until(() => bed.server.counters().http1.openConnections === 0);
    assert.deepEqual(
      bed.codes,
      Object.values(hostile).map(([, code]) => code),
    );
    assert.equal(bed.server.counters().heldBytes, 0);
  });

  test("of unfinished messages are held within the budget of a connection", async (t) => {
    const bed = await start(t, { limits: { maxHeldBytes: 50_000 } });
    const { socket, bytes } = await raw(bed);
    socket.write(frame(0x02, Buffer.alloc(60_000)));
    await until(() => bytes().length >= 4);
    assert.equal(bytes().readUInt16BE(2), 1013);
    assert.equal(bed.server.counters().http2.heldBytesRefusals, 1);
    assert.equal(bed.server.counters().heldBytes, 0);
  });

  test("that arrive in too many parts close the connection", async () => {
    const sent: Uint8Array[] = [];
    let deliver: (bytes: Uint8Array) => void = () => {};
    const tunnel: HttpTunnel = {
      bufferedBytes: 0,
      onClose() {},
      onDrain() {},
      pause() {},
      resume() {},
      hold: () => true,
      release() {},
      end() {},
      destroy() {},
      onData: (listener) => {
        deliver = listener;
      },
      send: (bytes) => sent.push(bytes) > 0,
    };
    const headers = new Map([
      ["upgrade", "websocket"],
      ["sec-websocket-version", "13"],
      ["sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="],
    ]);
    const exchange = new MemoryExchange({ path: "/", headers });
    const codes: number[] = [];
    const upgradable = Object.assign(exchange, { upgrade: () => tunnel });
    const options = { maxMessageBytes: MAX_MESSAGE_BYTES, onMessage() {} };
    serveWebSocket(upgradable, { ...options, onClose: (code) => void codes.push(code) });
    await until(() => String(deliver) !== "() => {}");
    for (const byte of frame(0x02, Buffer.alloc(5000))) deliver(Uint8Array.of(byte));
    await until(() => codes.length > 0);
    assert.deepEqual(codes, [1008]);
    assert.equal(Buffer.from(sent[1]).readUInt16BE(0), 1008);
  });
});
