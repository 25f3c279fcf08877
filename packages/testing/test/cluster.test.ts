/**
 * Clusters in tests, and what tests do to them.
 * @slow
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { toUtf8 } from "@quorate/proto";
import { FILLER_PREFIX, QuorateContainer, testCluster } from "../index.ts";

const run = promisify(execFile);

test("one member: clients, and its end with the block", async () => {
  let endpoint = "";
  {
    await using cluster = await testCluster();
    const client = cluster.client();
    await client.put("k", "v");
    assert.equal((await cluster.members[0].client().get("k")).count, 1);
    [endpoint] = cluster.endpoints;
  }
  await assert.rejects(fetch(`${endpoint}/health`));
});

test("three members: kill, start, pause, partition, heal", async () => {
  await using cluster = await testCluster({ members: 3 });
  const client = cluster.client({ timeoutMs: 60_000 });
  await client.put("k", "1");

  const first = await cluster.leading();
  await first.kill();
  assert.equal(first.isRunning, false);
  await cluster.leading();
  // Beside a change of leaders the outcome of a put may be unknown.
  await client.put("k", "2", { repeat: true });
  await first.start();
  await first.ready();
  assert.equal((await first.client({ timeoutMs: 60_000 }).get("k")).count, 1);

  const paused = await cluster.leading();
  paused.pause();
  const others = cluster.members.filter((one) => one !== paused);
  await cluster.leading(others);
  const rest = cluster.client({ endpoints: others.map((one) => one.endpoint), timeoutMs: 60_000 });
  await rest.put("k", "3", { repeat: true });
  const late = paused.client({ timeoutMs: 60_000 }).get("k");
  paused.resume();
  assert.equal(toUtf8((await late).kvs[0].value), "3");

  const alone = await cluster.leading();
  const majority = cluster.members.filter((one) => one !== alone);
  cluster.partition(majority, [alone]);
  await cluster.leading(majority);
  const there = cluster.client({
    endpoints: majority.map((one) => one.endpoint),
    timeoutMs: 60_000,
  });
  await there.put("k", "4", { repeat: true });
  assert.equal(toUtf8((await there.get("k")).kvs[0].value), "4");
  // It may be made once the network is whole again: its outcome is unknown.
  await assert.rejects(alone.client({ timeoutMs: 300 }).put("alone", "v"));
  cluster.heal();
  assert.equal(toUtf8((await alone.client({ timeoutMs: 60_000 }).get("k")).kvs[0].value), "4");
});

test("a slow disk delays what it must sync", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  await client.put("k", "v");
  cluster.members[0].slowDisk(300);
  // The log waits for a sync in place once more, as the last one was fast.
  await client.put("k", "v");
  const startMs = performance.now();
  await client.put("k", "v");
  assert.ok(performance.now() - startMs >= 290);
});

test("calls fail once, executed or not", async () => {
  await using cluster = await testCluster();
  const client = cluster.client();
  cluster.failNext({ method: "Put", code: "PermissionDenied", message: "not now" });
  assert.equal((await client.get("k")).count, 0);
  await assert.rejects(client.put("k", "v"), { message: "not now" });
  await client.put("k", "v");
  cluster.failNext({ method: "Put", code: "Unknown", isExecuted: true });
  await assert.rejects(client.put("lost", "v"));
  assert.equal((await client.get("lost")).count, 1);
  assert.throws(() => cluster.failNext({ method: "Putt" }), /no method Putt/);
});

test("leases end when their time is moved on, and others stay", async () => {
  await using cluster = await testCluster({ members: 3 });
  const client = cluster.client({ timeoutMs: 60_000 });
  const { ID } = await client.leases.grant(600);
  const longer = await client.leases.grant(6000);
  await client.put("k", "v", { lease: ID });
  await client.put("longer", "v", { lease: longer.ID });
  await cluster.advanceLeases(700);
  assert.equal((await client.get("k")).count, 0);
  assert.equal((await client.get("longer")).count, 1);
});

test("a quota that is full, and has room again", async () => {
  await using cluster = await testCluster();
  const client = cluster.client();
  await cluster.fillQuota();
  await assert.rejects(client.put("k", "v"), { code: "NoSpace" });
  await cluster.freeQuota();
  await client.put("k", "v");
  assert.equal((await client.get(FILLER_PREFIX, { prefix: true })).count, 0);
});

test("history is compacted under a watch", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  const { header } = await client.put("k", "1");
  const changes = client.watch("k", { revision: header.revision }).changes();
  assert.equal((await changes.next()).value?.kind, "put");
  const next = changes.next();
  next.catch(() => {});
  await cluster.compactUnderWatches(() => cluster.members[0].client().put("k", "2"));
  await assert.rejects(next, { code: "Compacted" });
});

test("a reset: to nothing, and to a point", async () => {
  await using cluster = await testCluster({ config: { "bcrypt-cost": 4 } });
  const client = cluster.client({ timeoutMs: 60_000 });
  const { ID } = await client.leases.grant(600);
  await client.put("seed", "1", { lease: ID });
  for (let i = 0; i < 300; i++) await client.put(`many/${i}`, "x");
  await cluster.mark("seeded");

  await client.put("seed", "2");
  await client.put("more", "1");
  await client.delete("many/", { prefix: true });
  const own = await client.leases.grant(600);
  await client.auth.userAdd("root", "secret");
  await client.auth.roleAdd("root");
  await client.auth.userGrantRole("root", "root");
  await client.auth.enable();
  cluster.failNext({ times: 1000 });
  await cluster.members[0].kill();
  await cluster.reset("seeded");

  const { kvs } = await client.get("", { fromKey: true });
  assert.equal(kvs.length, 301);
  const seed = kvs.find(({ key }) => toUtf8(key) === "seed");
  assert.equal(seed && toUtf8(seed.value), "1");
  assert.equal(seed?.lease, ID);
  assert.deepEqual(
    (await client.leases.list()).leases.map((one) => one.ID),
    [ID],
  );
  assert.notEqual(own.ID, ID);
  await cluster.reset();
  assert.equal((await client.get("", { fromKey: true })).count, 0);
  assert.deepEqual((await client.leases.list()).leases, []);
  await assert.rejects(cluster.reset("other"), /no point other/);
});

test("in the shape of a container", async () => {
  await using container = await new QuorateContainer().withConfig({ "max-txn-ops": 5 }).start();
  assert.equal(container.getMappedPort(2379), container.getClientPort());
  const client = container.cluster.client({
    endpoints: [container.getClientEndpoint()],
    timeoutMs: 60_000,
  });
  await client.put("k", "v");
  await container.restart();
  assert.equal((await client.get("k")).count, 1);
  assert.throws(() => container.getMappedPort(80), /there is no port 80/);
});

for (const what of ["ends", "throws", "forgets"])
  test(`nothing is left of a test that ${what}`, async () => {
    const file = join(import.meta.dirname, "support/leaves-nothing.ts");
    const { NODE_TEST_CONTEXT: _, ...rest } = process.env;
    const env = { ...rest, WHAT: what };
    // A process that has something left would not end.
    const { stdout } = await run(process.execPath, ["--test", "--test-reporter=tap", file], {
      env,
      timeout: 120_000,
    }).catch((error: { stdout: string }) => error);
    assert.match(stdout, what === "throws" ? /^# fail 1$/m : /^# pass 1$/m);
  });
