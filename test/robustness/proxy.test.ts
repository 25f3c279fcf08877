/**
 * The wires between members: what each fault does to the bytes of a connection, and that none makes
 * the proxy hold more than it may.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { freePorts } from "../support/ports.ts";
import { canFindOwners, ownerOfPort } from "./owner.ts";
import { MAX_HELD_BYTES, OPEN_WIRE, type WireCondition, Wires } from "./proxy.ts";

interface Line {
  readonly wires: Wires;
  /** The end of `a`, who called, and that of `b`. */
  readonly a: Socket;
  readonly b: Socket;
  readonly port: number;
}

/** A connection from a to b through the proxy of b. */
async function withLine(body: (line: Line) => Promise<void>): Promise<void> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const [port] = await freePorts(1);
  const wires = new Wires(["a", "b"], () => "a");
  await wires.open("b", port, (server.address() as AddressInfo).port);
  const a = connect(port, "127.0.0.1");
  a.on("error", () => {});
  const [b] = (await once(server, "connection")) as [Socket];
  b.on("error", () => {});
  try {
    await body({ wires, a, b, port: port });
  } finally {
    a.destroy();
    b.destroy();
    wires.close();
    server.close();
  }
}

/** Resolves when `bytes` have come. */
async function receive(socket: Socket, bytes: number): Promise<void> {
  let got = 0;
  while (got < bytes) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    got += chunk.length;
  }
  assert.equal(got, bytes);
}

/** Resolves when the socket is closed, by an error or without. */
const closedOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once("close", () => resolve()));

const condition = (more: Partial<WireCondition>): WireCondition => ({ ...OPEN_WIRE, ...more });

describe("wires", () => {
  test("bytes pass, both ways, and the end of a connection does", () =>
    withLine(async ({ a, b }) => {
      a.write("hello");
      await receive(b, 5);
      b.write("you");
      await receive(a, 3);
      a.end();
      await once(b, "end");
    }));

  test("delayed: not before its time, and in order", () =>
    withLine(async ({ wires, a, b }) => {
      wires.wire("a", "b").set(condition({ delayMs: 120, jitterMs: 30 }));
      const startMs = performance.now();
      const sent = Array.from({ length: 50 }, (_, i) => `${i};`);
      for (const text of sent) a.write(text);
      let got = "";
      b.on("data", (bytes) => {
        got += bytes;
      });
      while (got.length < sent.join("").length) await once(b, "data");
      assert.equal(got, sent.join(""));
      assert.ok(performance.now() - startMs >= 119);
    }));

  test("throttled: so many bytes a second and no more", () =>
    withLine(async ({ wires, a, b }) => {
      wires.wire("a", "b").set(condition({ bytesPerSecond: 200_000 }));
      const startMs = performance.now();
      a.write(Buffer.alloc(100_000));
      await receive(b, 100_000);
      // The last slice is not waited for.
      assert.ok(performance.now() - startMs >= 400);
    }));

  test("stalled one way: nothing comes, little is held, the other way goes on, and then all comes", () =>
    withLine(async ({ wires, a, b }) => {
      const wire = wires.wire("a", "b");
      wire.set(condition({ state: "stalled" }));
      const size = 16_000_000;
      a.write(Buffer.alloc(size));
      b.write("x");
      await receive(a, 1);
      while (wire.heldBytes < MAX_HELD_BYTES) await delay(5);
      await delay(50);
      assert.ok(wire.heldBytes < 2 * MAX_HELD_BYTES, `${wire.heldBytes} bytes are held`);
      assert.equal(b.bytesRead, 0);
      wire.set(OPEN_WIRE);
      await receive(b, size);
    }));

  test("a blackhole loses what it took: when it ends, its connections are reset", () =>
    withLine(async ({ wires, a, b }) => {
      wires.wire("a", "b").set(condition({ state: "blackhole" }));
      a.write("lost");
      b.write("x");
      await receive(a, 1);
      const closed = closedOf(a);
      wires.heal();
      await closed;
      assert.equal(b.bytesRead, 0);
    }));

  test("cut: connections break, new ones too, until it is healed", () =>
    withLine(async ({ wires, a, port }) => {
      const closed = closedOf(a);
      wires.wire("b", "a").set(condition({ state: "cut" }));
      await closed;
      const refused = connect(port, "127.0.0.1");
      refused.on("error", () => {});
      await closedOf(refused);
      wires.heal();
      const healed = connect(port, "127.0.0.1");
      await once(healed, "connect");
      healed.write("x");
      while (wires.wire("a", "b").passedBytes === 0) await delay(5);
      healed.destroy();
    }));
});

test("the owner of a connection is found", {
  skip: canFindOwners() ? false : "only Linux shows the owner of a connection",
}, async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(client, "connect");
  assert.equal(ownerOfPort(client.localPort!, [1, process.pid]), process.pid);
  assert.equal(ownerOfPort(client.localPort!, []), undefined);
  assert.equal(ownerOfPort(1, [process.pid]), undefined);
  client.destroy();
  server.close();
});
