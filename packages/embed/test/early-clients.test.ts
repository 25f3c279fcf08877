/**
 * Clients that come before a member serves: as with etcd they are connected and wait, from the
 * first line of the log on that says that ports are opened.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connect as dialTls } from "node:tls";
import type { LogFields, Logger } from "@quorate/host";
import { freePorts } from "../../../test/support/ports.ts";
import { scratchDirectory } from "../../../test/support/scratch.ts";
import { until } from "../../../test/support/until.ts";
import type { RunningMember } from "../node/launch.ts";
import { startMember } from "../node/start-member.ts";

/** The lines after which scripts and etcd's own tests connect. */
const ANNOUNCED = [
  "published local member to cluster through raft",
  "enabled capabilities for version",
];

/** Calls `seen` with the message of each line, as it is written. */
function listener(seen: (message: string, fields?: LogFields) => void): Logger {
  return { debug: () => {}, info: seen, warn: seen, error: seen, child: () => listener(seen) };
}

function scratch(t: TestContext): string {
  const directory = scratchDirectory("quorate-early-", t);
  return directory;
}

/** What is answered over a connection that is opened now. */
async function answer(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
  });
  socket.write("GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  await once(socket, "close");
  return text;
}

const HEALTHY = /^HTTP\/1\.1 200 OK[\s\S]*"health":"true"/;

for (const [kind, isPrivate, open] of [
  ["http", false, (port: number) => dial(port, "127.0.0.1")],
  [
    "https",
    false,
    (port: number) => dialTls({ port, host: "127.0.0.1", rejectUnauthorized: false }),
  ],
  ["unix", true, (_: number, path: string) => dial(path)],
] as const)
  test(`a client that connects when a line says so gets its answer: ${kind}`, async (t) => {
    const directory = scratch(t);
    const [port, peer] = await freePorts(2);
    const path = join(directory, "client");
    const url = isPrivate ? `unix://${path}` : `${kind}://127.0.0.1:${port}`;
    const answers = new Map<string, Promise<string>>();
    const member = await startMember({
      dataDir: join(directory, "data"),
      flags: [
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        ...(kind === "https" ? ["--auto-tls"] : []),
        `--listen-peer-urls=http://127.0.0.1:${peer}`,
        "--name=m",
        `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
        `--initial-cluster=m=http://127.0.0.1:${peer}`,
      ],
      logger: listener((message) => {
        if (ANNOUNCED.includes(message) && !answers.has(message))
          answers.set(message, answer(open(port, path)));
      }),
    });
    t.after(() => member.stop());
    assert.deepEqual([...answers.keys()].sort(), [...ANNOUNCED].sort());
    for (const text of await Promise.all(answers.values())) assert.match(text, HEALTHY);
  });

test("without a quorum metrics are served, and clients wait; the lines come in etcd's order", async (t) => {
  const directory = scratch(t);
  const [client, metrics, ...peers] = await freePorts(4);
  const url = `http://127.0.0.1:${client}`;
  const lines: string[] = [];
  const urls = peers.map((port) => `http://127.0.0.1:${port}`);
  const start = (name: string, peer: string, flags: readonly string[]) =>
    startMember({
      dataDir: join(directory, name),
      flags: [
        `--name=${name}`,
        `--initial-cluster=a=${urls[0]},b=${urls[1]}`,
        `--listen-peer-urls=${peer}`,
        `--initial-advertise-peer-urls=${peer}`,
        ...flags,
      ],
      logger: listener((message) => {
        if (name === "a") lines.push(message);
      }),
    });
  const first = start("a", urls[0], [
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-metrics-urls=http://127.0.0.1:${metrics}`,
  ]);
  const members: Promise<RunningMember>[] = [first];
  t.after(async () => {
    for (const member of await Promise.all(members)) await member.stop();
  });
  const ask = (page: string) => fetch(`http://127.0.0.1:${metrics}${page}`);
  await until("metrics are served", () => lines.includes("serving metrics"));
  const early = answer(dial(client, "127.0.0.1"));
  const health = await ask("/health");
  assert.equal(health.status, 503);
  assert.deepEqual(await health.json(), { health: "false", reason: "RAFT NO LEADER" });
  assert.match(await (await ask("/metrics")).text(), /^etcd_server_has_leader 0$/m);
  assert.ok(!lines.some((line) => line.startsWith("serving client traffic")), lines.join("\n"));
  members.push(start("b", urls[1], []));
  await Promise.all(members);
  assert.match(await early, HEALTHY);
  await (await first).ready;
  await until("it is ready", () => lines.includes("ready to serve client requests"));
  const order = ["configuring peer listeners", "configuring client listeners", "serving metrics"];
  assert.deepEqual(
    lines.filter((line) => order.includes(line)),
    order,
  );
});

test("a port in use is an error before anything is written", async (t) => {
  const directory = scratch(t);
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  t.after(() => other.close());
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  for (const flags of [
    [`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`],
    [`--listen-metrics-urls=${url}`],
    [`--listen-peer-urls=${url}`, `--initial-advertise-peer-urls=${url}`],
  ]) {
    const dataDir = join(directory, "data");
    await assert.rejects(startMember({ dataDir, flags: ["--auto-tls", ...flags] }), {
      code: "EADDRINUSE",
      message: `listen tcp ${url.slice(7)}: bind: address already in use (for ${url})`,
    });
    assert.ok(!existsSync(dataDir), flags.join(" "));
  }
});

test("a start that fails closes the connections that wait, and frees the ports", async (t) => {
  const directory = scratch(t);
  const [client, peer] = await freePorts(2);
  const url = `http://127.0.0.1:${client}`;
  const flags = [`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`];
  // The member that it asks for the cluster closes the connection once a client waits.
  const waits = Promise.withResolvers<Promise<unknown>>();
  const other = createServer((asked) => {
    const early = dial(client, "127.0.0.1", () => {
      waits.resolve(once(early, "close"));
      asked.destroy();
    });
    early.resume().on("error", waits.reject);
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  t.after(() => other.close());
  const otherUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const dataDir = join(directory, "data");
  const start = startMember({
    dataDir,
    flags: [
      ...flags,
      "--name=a",
      "--initial-cluster-state=existing",
      `--listen-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-cluster=a=http://127.0.0.1:${peer},b=${otherUrl}`,
    ],
  });
  await assert.rejects(start, /cannot fetch cluster info from peer urls/);
  await await waits.promise;
  rmSync(dataDir, { recursive: true, force: true });
  await using again = await startMember({ dataDir, flags });
  assert.deepEqual(again.endpoints, [url]);
});
