/** A real etcd, where one is installed, starts from a log that this package wrote. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { it, type TestContext } from "node:test";
import { nodeDisk } from "@quorate/host/node";
import { raftpb, walpb } from "@quorate/proto";
import { readWal, verifyWal, Wal } from "@quorate/wal";
import { endsWith } from "../../../test/support/children.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { options, START } from "./support.ts";

function etcdVersion(): string | undefined {
  try {
    return /etcd Version: (\S+)/.exec(
      execFileSync("etcd", ["--version"], { encoding: "utf8" }),
    )?.[1];
  } catch {
    return undefined;
  }
}

interface Etcd {
  call(method: string, body: object): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
}

/** Starts etcd and waits until it serves. */
async function startEtcd(
  t: TestContext,
  dataDir: string,
  clientPort: number,
  peerPort: number,
): Promise<Etcd> {
  const client = `http://127.0.0.1:${clientPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const args = [
    "--name=m",
    `--data-dir=${dataDir}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
  ];
  args.push(
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=m=${peer}`,
    "--logger=zap",
  );
  const child = endsWith(spawn("etcd", args, { stdio: ["ignore", "ignore", "pipe"] }), t);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const log: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      log.push(line);
      if (/ready to serve client requests|serving client traffic/.test(line)) resolve();
    });
    void exited.then(() => reject(new Error(`etcd ended:\n${log.slice(-20).join("\n")}`)));
  });
  return {
    async call(method, body) {
      const response = await fetch(`${client}/v3/${method}`, {
        method: "POST",
        body: JSON.stringify(body),
        // etcd waits at its end for open connections.
        headers: { connection: "close" },
      });
      return (await response.json()) as Record<string, unknown>;
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

const version = etcdVersion();
const base64 = (text: string) => Buffer.from(text).toString("base64");

it("etcd starts from our log and finds its keys", {
  skip: version === undefined && "no etcd is installed",
  timeout: 300_000,
}, async (t) => {
  t.diagnostic(`etcd ${version}`);
  const root = mkdtempSync(join(tmpdir(), "quorate-etcd-"));
  const theirs = join(root, "theirs");
  const ports = (await freePorts(2)) as [number, number];
  let etcd: Etcd;
  try {
    etcd = await startEtcd(t, theirs, ...ports);
    for (let i = 0; i < 60; i++)
      await etcd.call("kv/put", { key: base64(`key ${i}`), value: base64(`value ${i}`) });
    await etcd.stop();

    // Everything that etcd's log says, said again by ours, in small segments, into a new data
    // directory.
    const ours = join(root, "ours");
    const from = `${theirs}/member/wal`;
    const { metadata } = verifyWal(nodeDisk, from);
    nodeDisk.makeDir(`${ours}/member/snap`);
    const wal = Wal.create(nodeDisk, `${ours}/member/wal`, metadata, options(2048));
    const batch: raftpb.Entry[] = [];
    for (const { type, data } of readWal(nodeDisk, from)) {
      if (type === 2) batch.push(raftpb.Entry.decode(data));
      if (type === 3) {
        wal.append(raftpb.HardState.decode(data), batch.splice(0));
        await wal.sync();
      }
    }
    wal.append(undefined, batch);
    await wal.close();
    assert.ok(wal.segmentNames.length >= 3);

    etcd = await startEtcd(t, ours, ...ports);
    const all = await etcd.call("kv/range", {
      key: base64("key "),
      range_end: base64("key!"),
      limit: 100,
    });
    const kvs = all["kvs"] as { key: string; value: string }[];
    assert.deepEqual(
      new Map(
        kvs.map(({ key, value }) => [
          Buffer.from(key, "base64").toString(),
          Buffer.from(value, "base64").toString(),
        ]),
      ),
      new Map(Array.from({ length: 60 }, (_, i) => [`key ${i}`, `value ${i}`] as const).sort()),
    );
    await etcd.call("kv/put", { key: base64("after"), value: base64("it all") });
    await etcd.stop();

    // And what etcd went on to write there is read by us.
    const opened = Wal.open(
      nodeDisk,
      `${ours}/member/wal`,
      walpb.Snapshot.create(START),
      options(2048),
    );
    assert.ok(opened.entries.some((one) => Buffer.from(one.data).includes("it all")));
    await opened.wal.close();
  } finally {
    rmSync(root, { recursive: true });
  }
});
