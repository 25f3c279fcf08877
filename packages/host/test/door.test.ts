/** Places that are bound before anybody serves there: who waits, who is served, who is cut off. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, linkSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createServer as createTlsServer, connect as tlsConnect } from "node:tls";
import { makeAuthority, makeLocalCertificate } from "../../../test/support/certs.ts";
import { until } from "../../../test/support/until.ts";
import { type Door, MAX_HELD_CONNECTIONS, openDoor } from "../node/door.ts";

async function opened(t: TestContext, early?: "hold" | "refuse"): Promise<[Door, number]> {
  const door = await openDoor({ host: "127.0.0.1", port: 0 }, early);
  t.after(() => void door.close());
  return [door, (door.bound as AddressInfo).port];
}

async function dial(t: TestContext, port: number, localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  t.after(() => socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

const held = (door: Door, count: number) =>
  until(`${count} connections wait`, () => door.heldCount === count, 1);

const echo = (socket: Socket) => void socket.pipe(socket);
const failed = (error: Error) => assert.fail(error);

test("connections wait with what they sent, and are served in their order", async (t) => {
  const [door, port] = await opened(t);
  const early: Socket[] = [];
  for (const text of ["a", "b", "c"]) {
    const socket = await dial(t, port);
    socket.write(text);
    early.push(socket);
    await held(door, early.length);
  }
  const served: string[] = [];
  door.serve({
    accept: (socket) => {
      socket.once("data", (bytes) => served.push(bytes.toString()));
      echo(socket);
    },
    failed,
  });
  assert.equal(door.heldCount, 0);
  const answers = await Promise.all(early.map((socket) => once(socket, "data")));
  assert.deepEqual(answers.flat().map(String), ["a", "b", "c"]);
  assert.deepEqual(served, ["a", "b", "c"]);
  const late = await dial(t, port);
  late.write("d");
  assert.equal(String((await once(late, "data"))[0]), "d");
});

test("a TLS handshake that waits is completed", async (t) => {
  const [door, port] = await opened(t);
  const ca = makeAuthority();
  const { certPem: cert, keyPem: key } = makeLocalCertificate(ca, "member");
  const client = tlsConnect({ port, host: "127.0.0.1", ca: ca.certPem });
  t.after(() => client.destroy());
  await held(door, 1);
  const server = createTlsServer({ cert, key }, echo);
  door.serve({ accept: (socket) => void server.emit("connection", socket), failed });
  await once(client, "secureConnect");
  client.write("x");
  assert.equal(String((await once(client, "data"))[0]), "x");
});

test("a door that refuses closes connections until somebody serves", async (t) => {
  const [door, port] = await opened(t, "refuse");
  const early = await dial(t, port);
  await once(early, "close");
  door.serve({ accept: echo, failed });
  const late = await dial(t, port);
  late.write("x");
  assert.equal(String((await once(late, "data"))[0]), "x");
});

test("too many wait: the oldest of the address with the most goes", async (t) => {
  const [door, port] = await opened(t);
  const other = await dial(t, port, "127.0.0.2");
  const first = await dial(t, port);
  const closed = once(first, "close");
  first.resume();
  for (let n = 2; n < MAX_HELD_CONNECTIONS; n++) await dial(t, port);
  await held(door, MAX_HELD_CONNECTIONS);
  await dial(t, port);
  await closed;
  assert.equal(door.heldCount, MAX_HELD_CONNECTIONS);
  door.serve({ accept: echo, failed });
  other.write("x");
  assert.equal(String((await once(other, "data"))[0]), "x");
});

test("closing cuts off those that wait, and the port is free at once", async (t) => {
  const [door, port] = await opened(t);
  const early = await dial(t, port);
  early.resume();
  await held(door, 1);
  const closed = once(early, "close");
  await door.close();
  await closed;
  await door.close();
  const again = await openDoor({ host: "127.0.0.1", port });
  await again.close();
});

test("a taken port, and a unix socket on which a process listens, are refused", async (t) => {
  const [, port] = await opened(t);
  await assert.rejects(openDoor({ host: "127.0.0.1", port }), { code: "EADDRINUSE" });
  const directory = mkdtempSync(join(tmpdir(), "quorate-door-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "socket");
  const one = await openDoor({ path });
  await assert.rejects(openDoor({ path }), { code: "EADDRINUSE" });
  assert.ok(existsSync(path), "the listening process keeps its file");
  await one.close();
  // The file of a process that was killed.
  const other = createServer().listen(path);
  await once(other, "listening");
  const stale = join(directory, "stale");
  linkSync(path, stale);
  other.close();
  await once(other, "close");
  assert.ok(existsSync(stale));
  const replaced = await openDoor({ path: stale });
  assert.equal(replaced.bound, stale);
  await replaced.close();
  const file = join(directory, "file");
  writeFileSync(file, "no socket");
  await assert.rejects(openDoor({ path: file }), { code: "EADDRINUSE" });
});
