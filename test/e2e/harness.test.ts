/** The test harness itself, on the original. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { fromUtf8, KVService } from "@quorate/proto";
import { commandLineOf } from "../../scripts/cluster/processes.ts";
import { leaderOf } from "../support/checks.ts";
import { type CallError, TestClient } from "../support/client.ts";
import { startCluster, withCluster } from "../support/cluster.ts";
import { etcd, skipWithoutEtcd } from "../support/executables.ts";
import { freePorts } from "../support/ports.ts";

const { Put, Range } = KVService.methods;

test("a cluster over mutual TLS: call, freeze, thaw, kill, restart, stop", {
  skip: skipWithoutEtcd,
}, async () => {
  let dir = "";
  await withCluster({ executable: etcd!, size: 3, tls: true }, async (cluster) => {
    dir = cluster.dir;
    // The leader stays: what a member forwards to a leader that is frozen is lost, and its client
    // waits in vain.
    const leader = await leaderOf(cluster);
    const [first, third] = cluster.members.filter((member) => member !== leader);
    const client = new TestClient(leader.clientAddress, cluster.identity);
    try {
      const key = fromUtf8("k");
      assert.equal((await client.call(Put, { key, value: fromUtf8("v") })).header!.revision, 2);

      third.signal("SIGSTOP");
      assert.equal((await client.call(Put, { key, value: fromUtf8("v2") })).header!.revision, 3);
      third.signal("SIGCONT");

      const oldPid = first.pid!;
      await first.kill();
      assert.equal(first.isRunning, false);
      assert.equal(commandLineOf(oldPid), undefined);
      first.start();
      await first.waitReady();
      const other = new TestClient(first.clientAddress, cluster.identity);
      assert.equal((await other.call(Range, { key })).count, 1);
      await assert.rejects(
        other.call(Range, {}),
        (error: CallError) =>
          error.code === 3 && error.details === "etcdserver: key is not provided",
      );
      other.close();
      await third.terminate();
      assert.equal(third.isRunning, false);
    } finally {
      client.close();
    }
  });
  assert.ok(!existsSync(dir));
});

test("when the body throws, processes and files are gone all the same", {
  skip: skipWithoutEtcd,
}, async (t) => {
  const words = t.mock.method(console, "error", () => {});
  let pid = 0;
  let dir = "";
  const body = withCluster({ executable: etcd!, size: 1 }, async (cluster) => {
    pid = cluster.members[0].pid!;
    dir = cluster.dir;
    throw new Error("planted");
  });
  await assert.rejects(body, /planted/);
  assert.equal(commandLineOf(pid), undefined);
  assert.ok(!existsSync(dir));
  assert.match(String(words.mock.calls[0].arguments[0]), /--- log of m0/);
});

test("a member that cannot start says so with its log", { skip: skipWithoutEtcd }, async () => {
  await assert.rejects(
    startCluster({ executable: etcd!, size: 1, flags: ["--no-such-flag"] }),
    /m0 ended while starting[\s\S]*no-such-flag/,
  );
});

test("a port that another process took meanwhile is distinguished from other deaths", {
  skip: skipWithoutEtcd,
}, async () => {
  const [client, peer] = await freePorts(2);
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(client, "127.0.0.1", resolve));
  try {
    const start = startCluster({ executable: etcd!, size: 1, ports: [[client, peer]] });
    await assert.rejects(
      start,
      (error: Error) => (error.cause as { portWasTaken?: boolean }).portWasTaken === true,
    );
  } finally {
    holder.close();
  }
});
