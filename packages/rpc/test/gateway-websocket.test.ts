/** The gateway over WebSockets: the client of the library ws, on the engine. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { httpRoutes, KVService, RangeRequest, RangeResponse, WatchService } from "@quorate/proto";
import { SocketGateway } from "@quorate/rpc/node";
import { WebSocket } from "ws";
import { Gateway } from "../src/gateway/gateway.ts";
import { MAX_SOCKET_MESSAGE_BYTES, SocketExchange } from "../src/gateway/socket-exchange.ts";
import type { CallContext, StreamCall } from "../src/service.ts";
import { startServer } from "./helpers/server.ts";
import { until } from "./helpers/until.ts";

const RANGE = KVService.methods.Range.path;
const WATCH = WatchService.methods.Watch.path;

interface Bed {
  readonly port: number;
  readonly calls: StreamCall[];
  readonly contexts: CallContext[];
  readonly seen: string[];
  readonly sockets: SocketGateway;
  readonly clock: ManualClock;
}

/** A gateway whose watch echoes its requests, and whose range counts keys. */
async function start(t: TestContext): Promise<Bed> {
  const calls: StreamCall[] = [];
  const contexts: CallContext[] = [];
  const seen: string[] = [];
  const clock = new ManualClock();
  const gateway = new Gateway({
    services: {
      unary: new Map([
        [
          RANGE,
          (request: Uint8Array, context: CallContext) => {
            contexts.push(context);
            return RangeResponse.encode({ count: RangeRequest.decode(request).key.length });
          },
        ],
      ]),
      stream: new Map([
        [
          WATCH,
          (call: StreamCall) => {
            calls.push(call);
            return {
              message: (bytes: Uint8Array) => void call.send(bytes),
              halfClosed: () => void seen.push("halfClosed"),
              cancelled: () => void seen.push("cancelled"),
            };
          },
        ],
      ]),
    },
    routes: httpRoutes(),
    clock,
    observer: undefined,
    limits: {
      maxRequestBytes: 4096,
      maxBodyBytes: 8192,
      maxResponseBytes: 1 << 24,
      sendBudgetBytes: 1000,
      maxLingeringBytes: 5000,
      maxCalls: 100,
    },
  });
  const options = { clock, maxMessageBytes: 8192, maxHeldTotalBytes: 10_000 };
  const sockets = new SocketGateway(gateway, options);
  t.after(() => sockets.close());
  const { port } = await startServer(t, { exchange: sockets.handler });
  return { port, calls, contexts, seen, sockets, clock };
}

interface Client {
  readonly socket: WebSocket;
  readonly messages: string[];
  /** The code with which it was closed. */
  readonly closed: Promise<number>;
}

async function connect(
  t: TestContext,
  { port }: Bed,
  path: string,
  protocols: string[] = [],
  headers: Record<string, string> = {},
): Promise<Client> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, { headers });
  const messages: string[] = [];
  socket.on("message", (data: Buffer) => void messages.push(data.toString()));
  socket.on("error", () => {});
  t.after(() => socket.terminate());
  const closed = new Promise<number>((resolve) => socket.on("close", resolve));
  await new Promise((resolve) => socket.on("open", resolve));
  return { socket, messages, closed };
}

test("each message is a part of the body, and each line of the response a message", async (t) => {
  const bed = await start(t);
  const { socket, messages, closed } = await connect(t, bed, "/v3/watch?method=GET");
  socket.send('{"create_request":{"key":');
  socket.send(Buffer.from('"Zm9v"}} {}'));
  await until(() => messages.length === 2);
  // What the service echoes is a message of the other type: field 1 is the header.
  assert.ok(messages.every((text) => /^\{"result":\{.*\}\}$/.test(text)));
  bed.calls[0].end({ code: 11, message: "over" });
  assert.equal(await closed, 1000);
  assert.equal(messages.at(-1), '{"error":{"code":11,"message":"over"}}');
  assert.equal(bed.sockets.size, 0);
});

test("a client that goes cancels its call", async (t) => {
  const bed = await start(t);
  const { socket } = await connect(t, bed, "/v3/watch");
  await until(() => bed.calls.length === 1);
  socket.terminate();
  await until(() => bed.seen.length === 1);
  assert.deepEqual(bed.seen, ["cancelled"]);
});

test("a method with one request takes the first message, and closes behind the response", async (t) => {
  const bed = await start(t);
  const { socket, messages, closed } = await connect(t, bed, "/v3/kv/range");
  socket.send('{"key":"Zm9v"}');
  assert.equal(await closed, 1000);
  assert.deepEqual(messages, ['{"count":"3"}']);
  const other = await connect(t, bed, "/v3/kv/nope");
  assert.equal(await other.closed, 1000);
  assert.deepEqual(other.messages, ['{"code":5,"message":"Not Found"}']);
});

test("browsers send their token as a subprotocol or a cookie", async (t) => {
  const bed = await start(t);
  const tokens: (string | undefined)[] = [];
  for (const [protocols, headers] of [
    [["Bearer", "tok.1"], {}],
    [[], { cookie: "a=b; token=tok.2" }],
    [[], { authorization: "tok.3" }],
  ] as [string[], Record<string, string>][]) {
    const { socket, closed } = await connect(t, bed, "/v3/kv/range", protocols, headers);
    assert.equal(socket.protocol, protocols[0] ?? "");
    socket.send("{}");
    await closed;
    tokens.push(bed.contexts.at(-1)!.metadata("authorization"));
  }
  assert.deepEqual(tokens, ["tok.1", "tok.2", "tok.3"]);
});

test("messages and bodies that are too long end the call", async (t) => {
  const bed = await start(t);
  const long = await connect(t, bed, "/v3/watch");
  long.socket.send("x".repeat(9000));
  assert.equal(await long.closed, 1009);
  const endless = await connect(t, bed, "/v3/watch");
  endless.socket.send(`{"x":[${"1,".repeat(3000)}`);
  endless.socket.send("1,".repeat(3000));
  assert.equal(await endless.closed, 1000);
  assert.match(endless.messages[0], /^\{"error":\{"code":8,/);
});

test("a client that answers no ping is gone", async (t) => {
  const bed = await start(t);
  const { socket, messages, closed } = await connect(t, bed, "/v3/watch");
  let pings = 0;
  socket.on("ping", () => pings++);
  bed.clock.advance(60_000);
  await until(() => pings === 1);
  const silent = await connect(t, bed, "/v3/watch");
  silent.socket.pong = () => {};
  // The library answers by itself unless it does not read.
  silent.socket.pause();
  bed.clock.advance(60_000);
  await until(() => pings === 2);
  // What it sends behind its answer shows that the answer has come.
  socket.send("{}");
  await until(() => messages.length === 1);
  bed.clock.advance(60_000);
  await until(() => bed.sockets.size === 1);
  silent.socket.resume();
  assert.equal(await silent.closed, 1001);
  socket.close();
  assert.equal(await closed, 1005);
  await until(() => bed.sockets.size === 0);
});

test("a line that is longer than a message may be closes the socket", () => {
  const closes: number[] = [];
  const budget = { maxBytes: 10, usedBytes: 0 };
  const head = {
    method: "GET",
    path: "/v3/watch",
    query: "",
    headers: new Map(),
    peerAddress: "",
    peerCommonName: undefined,
  };
  const exchange = new SocketExchange(head, true, budget, {
    send: () => true,
    bufferedBytes: 0,
    pause: () => {},
    resume: () => {},
    close: (code) => void closes.push(code),
  });
  let aborted = 0;
  exchange.serve(() => ({ aborted: () => aborted++ }));
  assert.deepEqual([exchange.hold(10), exchange.hold(1), budget.usedBytes], [true, false, 10]);
  const piece = new Uint8Array(MAX_SOCKET_MESSAGE_BYTES / 4);
  for (let i = 0; i < 4; i++) assert.equal(exchange.send(piece), true);
  assert.equal(exchange.send(piece), false);
  assert.deepEqual([closes, aborted, budget.usedBytes], [[1009], 1, 0]);
});
