/** The gateway: which endpoint is chosen, and what becomes of connections. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { Worker } from "node:worker_threads";
import { SeededRandom, silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { ManualClock } from "@quorate/host/testing";
import { type GatewayEndpoint, Picker } from "@quorate/proxy";
import { TcpProxy } from "@quorate/proxy/node";
import { until } from "../../../test/support/until.ts";

const endpoint = (port: number, priority = 0, weight = 0): GatewayEndpoint => ({
  host: "127.0.0.1",
  port,
  priority,
  weight,
});

function counts(picker: Picker, times: number): Record<number, number> {
  const found: Record<number, number> = {};
  for (let i = 0; i < times; i++) {
    const port = picker.next()?.endpoint.port ?? 0;
    found[port] = (found[port] ?? 0) + 1;
  }
  return found;
}

test("endpoints in turn, the best priority first, by weight", () => {
  const random = new SeededRandom(1n);
  const turns = new Picker([endpoint(1), endpoint(2), endpoint(3)], random);
  assert.deepEqual(counts(turns, 9), { 1: 3, 2: 3, 3: 3 });
  turns.remotes[1].isActive = false;
  assert.deepEqual(counts(turns, 8), { 1: 4, 3: 4 });
  const ranked = new Picker([endpoint(1, 1), endpoint(2, 0), endpoint(3, 1)], random);
  assert.deepEqual(counts(ranked, 3), { 2: 3 });
  ranked.remotes[1].isActive = false;
  assert.deepEqual(counts(ranked, 4), { 1: 2, 3: 2 });
  for (const remote of ranked.remotes) remote.isActive = false;
  assert.deepEqual(counts(ranked, 3), { 2: 3 }, "none is active: by priority again");
  const weighed = counts(
    new Picker([endpoint(1, 0, 30), endpoint(2, 0, 10), endpoint(3)], random),
    4000,
  );
  assert.ok(weighed[1] > 2600 && weighed[1] < 3300, `${weighed[1]} of 3,000`);
  assert.ok(weighed[3] > 5 && weighed[3] < 120, `${weighed[3]} of 40`);
});

test("a connection tries each endpoint once: active ones first, then the others", () => {
  const picker = new Picker(
    [endpoint(1, 1), endpoint(2, 0), endpoint(3, 0, 5), endpoint(4, 2)],
    new SeededRandom(1n),
  );
  picker.remotes[2].isActive = false;
  picker.remotes[3].isActive = false;
  const tried = new Set<(typeof picker.remotes)[number]>();
  const order: number[] = [];
  for (let one = picker.next(tried); one && order.length < 9; one = picker.next(tried)) {
    order.push(one.endpoint.port);
    tried.add(one);
  }
  assert.deepEqual(order, [2, 1, 3, 4]);
});

async function listen(t: TestContext, serve: (socket: Socket) => void): Promise<Server> {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket.on("error", () => {}));
    serve(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return server;
}

/** A port that takes no connection any more: its queue is full, and no process accepts. */
async function fullPort(t: TestContext): Promise<number> {
  const worker = new Worker(
    `const { parentPort } = require("node:worker_threads");
    const server = require("node:net").createServer();
    server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`,
    { eval: true },
  );
  t.after(() => worker.terminate());
  const [port] = (await once(worker, "message")) as [number];
  const sockets = [1, 2].map(() => connect({ port, host: "127.0.0.1" }).on("error", () => {}));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  // They are reset when the thread ends before they do.
  for (const socket of sockets) socket.on("error", () => {});
  return port;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

async function gateway(
  t: TestContext,
  ports: readonly number[],
  options: object = {},
  clock: ManualClock | typeof nodeClock = nodeClock,
): Promise<{ proxy: TcpProxy; picker: Picker; open: () => Socket }> {
  const picker = new Picker(
    ports.map((port) => endpoint(port)),
    new SeededRandom(1n),
  );
  const all = { host: "127.0.0.1", port: 0, retryDelayMs: 1000, ...options };
  const proxy = new TcpProxy(all, picker, { clock, logger: silentLogger });
  const port = await proxy.listen();
  t.after(() => proxy.close());
  return { proxy, picker, open: () => connect({ port, host: "127.0.0.1", allowHalfOpen: true }) };
}

async function textOf(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  return text;
}

test("bytes of both directions, and the end of one while the other goes on", async (t) => {
  const server = await listen(t, (socket) => {
    let size = 0;
    socket.on("data", (chunk) => {
      size += chunk.length;
    });
    socket.on("end", () => socket.end(`${size} bytes`));
  });
  const { open } = await gateway(t, [portOf(server)]);
  const client = open();
  client.end(Buffer.alloc(1_000_000));
  assert.equal(await textOf(client), "1000000 bytes");
});

test("an endpoint that is down is passed over, and tried again later", async (t) => {
  const server = await listen(t, (socket) => socket.end("up"));
  const other = await listen(t, (socket) => socket.end("back"));
  const otherPort = portOf(other);
  const clock = new ManualClock();
  const { picker, open } = await gateway(t, [otherPort, portOf(server)], {}, clock);
  // Only now: the gateway must not get this port.
  other.close();
  await once(other, "close");
  assert.equal(await textOf(open()), "up");
  assert.deepEqual(
    picker.remotes.map(({ isActive }) => isActive),
    [false, true],
  );
  other.listen(otherPort, "127.0.0.1");
  await once(other, "listening");
  clock.advance(1000);
  await until("the endpoint is active", () => picker.remotes[0].isActive);
});

test("an only endpoint that failed once stays in use", async (t) => {
  const server = await listen(t, (socket) => socket.end("up"));
  const port = portOf(server);
  // Its clock stands still: nothing is tried again but for a client.
  const { picker, open } = await gateway(t, [port], {}, new ManualClock());
  server.close();
  await once(server, "close");
  await textOf(open()).catch(() => {});
  assert.equal(picker.remotes[0].isActive, false);
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  assert.equal(await textOf(open()), "up");
  assert.equal(picker.remotes[0].isActive, true, "an attempt that succeeds makes it active");
});

test("all endpoints down: each is tried for each client, and the first to return serves", async (t) => {
  const [first, second] = [
    await listen(t, (socket) => socket.end("first")),
    await listen(t, (socket) => socket.end("second")),
  ];
  const ports = [portOf(first), portOf(second)];
  const { picker, open } = await gateway(t, ports, {}, new ManualClock());
  for (const server of [first, second]) {
    server.close();
    await once(server, "close");
  }
  assert.equal(await textOf(open()).catch(() => ""), "");
  assert.deepEqual(
    picker.remotes.map(({ isActive }) => isActive),
    [false, false],
  );
  second.listen(ports[1], "127.0.0.1");
  await once(second, "listening");
  assert.equal(await textOf(open()), "second");
  assert.equal(await textOf(open()), "second");
});

test("a dial of the only endpoint that is too slow costs its own client alone", async (t) => {
  const port = await fullPort(t);
  const { picker, open, proxy } = await gateway(
    t,
    [port],
    { dialTimeoutMs: 50 },
    new ManualClock(),
  );
  await textOf(open()).catch(() => {});
  assert.equal(picker.remotes[0].isActive, false);
  const server = await listen(t, (socket) => socket.end("up"));
  // The same endpoint, reachable again.
  Object.assign(picker.remotes[0].endpoint, { port: portOf(server) });
  // On a busy machine this dial may be too slow as well; that again costs its own client alone.
  await until("it serves", async () => (await textOf(open()).catch(() => "")) === "up");
  await until("none is left", () => proxy.connections === 0);
});

test("without an endpoint, or with too many connections, a client is closed", async (t) => {
  const server = await listen(t, (socket) => {
    socket.resume().on("end", () => socket.end());
  });
  const { proxy, picker, open } = await gateway(t, [portOf(server)], { maxConnections: 2 });
  const kept = [open(), open()];
  await Promise.all(kept.map((socket) => once(socket, "connect")));
  await until("both are counted", () => proxy.connections === 2);
  await textOf(open()).catch(() => {});
  assert.equal(proxy.refused, 1);
  for (const socket of kept) socket.destroy();
  await until("none is left", () => proxy.connections === 0);
  server.close();
  await once(server, "close");
  await textOf(open()).catch(() => {});
  assert.equal(picker.remotes[0].isActive, false);
  await until("it is closed", () => proxy.connections === 0);
});

test("a half-closed connection that is silent ends; one side's loss is the other's", async (t) => {
  const sockets: Socket[] = [];
  const server = await listen(t, (socket) => {
    sockets.push(socket);
    socket.resume();
  });
  const { proxy, open } = await gateway(t, [portOf(server)], { halfClosedTimeoutMs: 50 });
  const half = open();
  half.on("error", () => {});
  half.resume();
  half.end("x");
  await once(half, "close");
  const lost = open();
  lost.on("error", () => {});
  lost.resume();
  await until("both are there", () => sockets.length === 2);
  sockets[1].resetAndDestroy();
  await once(lost, "end");
  lost.destroy();
  await until("none is left", () => proxy.connections === 0);
});

test("a side that does not read holds the other up, not the memory", async (t) => {
  const server = await listen(t, (socket) => socket.pause());
  const { open } = await gateway(t, [portOf(server)]);
  const client = open();
  client.on("error", () => {});
  let sent = 0;
  const chunk = Buffer.alloc(1024 * 1024);
  const write = (): void => {
    while (sent < 512 && client.write(chunk)) sent++;
  };
  client.on("drain", write);
  write();
  let before = -1;
  await until(
    "it stops",
    () => {
      const stopped = before === sent;
      before = sent;
      return stopped;
    },
    300,
  );
  assert.ok(sent < 200, `${sent} MiB were taken`);
  client.destroy();
});
