/**
 * quoratectl migrate: three members of etcd under load become three of Quorate, and etcd again,
 * while a watch, a lease and a lock are held.
 * @slow
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect, lockNamed, toUtf8 } from "@quorate/client";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import {
  type Executable,
  etcdNewest,
  etcdOf,
  memberUnderTest,
  skipWithoutEtcdNewest,
} from "../support/executables.ts";
import type { TestMember } from "../support/member.ts";
import { ourTool } from "../support/snapshots.ts";
import { until } from "../support/until.ts";

/** When a refused write is sent again. */
const REPEAT_MS = 100;
/** The leader leaves twice: writes of an election timeout or so. */
const MAX_REFUSED = 30;

/** Starts members when their variables appear in the directory, until it is stopped. */
function starter(dir: string, members: readonly TestMember[]) {
  let isStopped = false;
  const done = (async () => {
    for (const member of members) {
      const file = join(dir, member.name);
      await until(`${member.name} is to be started`, () => isStopped || existsSync(file));
      if (isStopped) return;
      const initial = readFileSync(file, "utf8").trim();
      member.start([`--initial-cluster=${initial}`, "--initial-cluster-state=existing"]);
    }
  })();
  return {
    stop(): Promise<void> {
      isStopped = true;
      return done;
    },
  };
}

async function prepared(
  cluster: TestCluster,
  executable: Executable,
  names: readonly string[],
): Promise<TestMember[]> {
  const members: TestMember[] = [];
  for (const name of names)
    members.push(await cluster.prepareMember(name, { executable, flags: [] }));
  return members;
}

async function migrate(
  cluster: TestCluster,
  to: "quorate" | "etcd",
  from: readonly TestMember[],
  members: readonly TestMember[],
): Promise<void> {
  const dir = join(cluster.dir, `to-${to}`);
  mkdirSync(dir);
  const args = [
    "migrate",
    `--endpoints=${from.map((member) => member.clientUrl).join(",")}`,
    `--to=${to}`,
    ...members.map((member) => `--member=${member.name}=${member.options.peerUrl}`),
  ];
  const dry = await ourTool("quoratectl", ...args, "--dry-run");
  assert.equal(dry.code, 0, dry.stderr);
  assert.match(dry.stdout, /The plan, to .*13\. remove .*14\. done/s);
  // It prints what to start, and gives up waiting; the next run goes on from there.
  const alone = await ourTool("quoratectl", ...args, "--wait-timeout=6s");
  assert.equal(alone.code, 1);
  assert.match(
    alone.stdout,
    new RegExp(`Start ${members[0]!.name} with ${to} and these variables`),
  );
  assert.match(alone.stderr, /gave up waiting: .*run the same command again to continue/);
  const starting = starter(dir, members);
  try {
    // The file is complete or not there.
    const start = `echo "$ETCD_INITIAL_CLUSTER" > ${dir}/new && mv ${dir}/new ${dir}/$ETCD_NAME`;
    const { code, stdout, stderr } = await ourTool("quoratectl", ...args, `--start=${start}`);
    assert.equal(code, 0, `${stdout}\n${stderr}`);
    assert.match(
      stdout,
      /promote \w+ when it has caught up: done\. 4 members are equal at revision/,
    );
    assert.match(stdout, /All members are of \w+: 3 are equal at revision \d+\./);
  } finally {
    await starting.stop();
  }
}

/** The release that the members have before; they come back as the newest. */
const release = process.env["QUORATE_TEST_MIGRATE_FROM"] ?? "";

test("three members of etcd go to Quorate and back, and nothing that clients hold is lost", {
  skip: skipWithoutEtcdNewest,
}, async (t) => {
  const executable = release === "" ? etcdNewest! : etcdOf(release)!;
  await withCluster({ executable, size: 3 }, async (cluster) => {
    const before = [...cluster.members];
    const middle = await prepared(cluster, memberUnderTest, ["q0", "q1", "q2"]);
    const after = await prepared(cluster, etcdNewest!, ["e0", "e1", "e2"]);
    const endpoints = [...before, ...middle, ...after].map((member) => member.clientUrl);
    const client = connect({ endpoints, timeoutMs: 20_000 });
    t.after(() => client.close());
    const { header } = await client.memberList();
    const { header: begun } = await client.put("load", "begun");

    const session = await client.session({ ttlSeconds: 30 });
    const lock = await lockNamed(client, session, "held");
    let acknowledged = 0;
    const refused: string[] = [];
    let isStopping = false;
    t.after(() => {
      isStopping = true;
    });
    const load = (async () => {
      while (!isStopping) {
        const next = String(acknowledged + 1);
        try {
          await client.put("load", next, { repeat: true });
          acknowledged++;
        } catch (error) {
          refused.push((error as Error).message);
          await delay(REPEAT_MS);
        }
      }
    })();
    const seen: string[] = [];
    const watch = client.watch("load", { revision: begun!.revision + 1 });
    const watching = (async () => {
      for await (const { kv } of watch.changes()) seen.push(toUtf8(kv.value));
    })();

    await migrate(cluster, "quorate", before, middle);
    for (const member of before) await member.exited;
    await migrate(cluster, "etcd", middle, after);
    for (const member of middle) await member.exited;

    isStopping = true;
    await load;
    const last = connect({ endpoints: after.map((member) => member.clientUrl) });
    const { kvs, header: end } = await last.get("load");
    assert.equal(end!.clusterId, header!.clusterId, "the same cluster");
    const value = toUtf8(kvs[0]!.value);
    assert.ok(Number(value) >= acknowledged && acknowledged > 100, `${value}, ${acknowledged}`);
    // One change of the leader, or one member that leaves, costs a call at the most.
    assert.ok(
      refused.length <= MAX_REFUSED,
      `${refused.length} refused: ${[...new Set(refused)].join("; ")}`,
    );
    t.diagnostic(`${acknowledged} writes acknowledged, ${refused.length} refused`);
    await until("the watch has seen all", () => seen.at(-1) === value);
    const count = Number(kvs[0]!.version) - 1;
    assert.equal(seen.length, count, "each change once");
    assert.ok(!session.signal.aborted, "the lease was renewed all the time");
    const { kvs: held } = await last.get("held", { prefix: true });
    assert.equal(held.length, 1, "the lock is held");
    await lock.release();
    watch.cancel();
    await watching;
    await session.close();
    last.close();
    client.close();
  });
});
