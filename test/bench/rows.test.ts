/**
 * Every row of the benchmark runs, for a moment each, on one member of ours; what it counts fits
 * the store's revision.
 * @slow
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Agents, agentEnv } from "../../bench/agents.ts";
import { revisionOf } from "../../bench/calls.ts";
import { measureIdle, measureManyPuts, measureStart } from "../../bench/life.ts";
import { runCount, runLoad } from "../../bench/load.ts";
import { readOptions } from "../../bench/options.ts";
import { type Ground, ground, preparation, rows } from "../../bench/rows.ts";
import { goBenchmark, goRows, readGoOutput, runGoBenchmark } from "../../bench/stock.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { quorate } from "../support/executables.ts";

let cluster: TestCluster;
let ready: Ground;

before(async () => {
  cluster = await startCluster({ executable: quorate, size: 1, env: agentEnv });
  const target = { urls: cluster.endpoints, identity: cluster.identity };
  ready = ground(target, target.urls[0], 200, 256, 500);
  const { load, count } = preparation(ready);
  await runCount(load, count);
});
after(() => cluster?.destroy());

for (const row of rows) {
  test(row.name, async () => {
    const { leader, target } = ready;
    const before = await revisionOf(leader, target.identity);
    const load = row.load(ready);
    const result = await runLoad(load, { warmUpMs: 50, durationMs: 100 });
    assert.equal(result.failed, 0);
    assert.ok(result.callsInAll > 0);
    assert.equal((await revisionOf(leader, target.identity)) - before, load.revisions);
  });
}

test("what a member allocates is read", async () => {
  const heaps = new Agents(cluster.members.map((member) => member.pid!));
  try {
    await heaps.begin();
    const idle = await heaps.end();
    await heaps.begin();
    const row = rows.find(({ name }) => name === "put random, 1000 clients")!;
    const { callsInAll } = await runLoad(row.load(ready), { warmUpMs: 500, durationMs: 500 });
    const busy = await heaps.end();
    assert.ok(idle.allocatedBytes < 1e6, `${idle.allocatedBytes} bytes at rest`);
    assert.ok(busy.allocatedBytes > 1000 * callsInAll, `${busy.allocatedBytes} bytes`);
    assert.ok(busy.survivedBytes > 0 && busy.survivedBytes < busy.allocatedBytes);
  } finally {
    heaps.close();
  }
});

test("what holds a member's loop is noted, on the clock of all processes", async () => {
  const agents = new Agents(cluster.members.map((member) => member.pid!));
  try {
    const fromMs = Number(process.hrtime.bigint()) / 1e6;
    await agents.trace();
    const row = rows.find(({ name }) => name === "put random, 1000 clients")!;
    await runLoad(row.load(ready), { warmUpMs: 500, durationMs: 1500 });
    const noted = (await agents.traced()).flat();
    assert.ok(noted.length > 0);
    const toMs = Number(process.hrtime.bigint()) / 1e6;
    for (const one of noted)
      assert.ok(
        one.fromMs >= fromMs - 1 && one.fromMs + one.durationMs <= toMs + 1,
        JSON.stringify(one),
      );
    assert.ok(noted.some(({ what }) => what.startsWith("loop, ")));
    assert.ok(noted.some(({ what }) => what === "collection of young objects"));
  } finally {
    agents.close();
  }
});

const withoutGo = goBenchmark === undefined ? "etcd's benchmark tool is not installed" : false;

test("etcd's benchmark tool", { skip: withoutGo }, async () => {
  for (const row of goRows) {
    const load = { total: 500, keyCount: 100, valueBytes: 256, key: ready.keys[0] };
    const { ratePerS, p50Ms, p99Ms } = await runGoBenchmark(
      goBenchmark!,
      ready.target,
      cluster.certs,
      row.clients,
      row.command(load),
    );
    assert.ok(ratePerS > 0 && p50Ms > 0 && p99Ms >= p50Ms, row.name);
  }
});

test("what etcd's benchmark tool says is read, and a failure is not taken for a figure", () => {
  const output =
    "Summary:\n  Total:\t1.5 secs.\n  Requests/sec:\t20.25\n\nLatency distribution:\n  50% in 0.0040 secs.\n  99% in 0.0300 secs.\n";
  assert.deepEqual(readGoOutput(output, 0), {
    ratePerS: 20.25,
    elapsedS: 1.5,
    p50Ms: 4,
    p99Ms: 30,
  });
  assert.throws(() => readGoOutput(output, 1), /ended with code 1/);
  assert.throws(() => readGoOutput(`${output}\nError distribution:\n  [3] gone\n`, 0), /gone/);
});

test("rows that are no loads", async () => {
  const figures = [
    ...(await measureStart(quorate)),
    ...(await measureIdle(quorate, 0.1)),
    ...(await measureManyPuts(quorate, { puts: 3000, valueBytes: 256, isOneKey: true })),
  ];
  assert.ok(figures.length > 10);
  for (const { name, value } of figures)
    assert.ok(process.platform !== "linux" || value >= 0, `${name}: ${value}`);
});

test("options", () => {
  assert.deepEqual(readOptions([]).sizes, [1, 3]);
  assert.deepEqual(readOptions([]).tls, [false, true]);
  assert.deepEqual(readOptions(["--tls", "--size", "3"]).tls, [true]);
  assert.deepEqual(readOptions(["put", "txn"]).rows, ["put", "txn"]);
  assert.equal(readOptions(["--quick", "--seconds", "4"]).seconds, 4);
  assert.throws(
    () => readOptions(["--rounds", "no"]),
    /--rounds must be a number above 0, not "no"/,
  );
  const { etcd, benchmark } = readOptions(["--etcd", "/opt/etcd", "--benchmark", "/opt/b"]);
  assert.deepEqual([etcd, benchmark], ["/opt/etcd", "/opt/b"]);
  assert.throws(() => readOptions(["--only", "zookeeper"]), /quorate or etcd/);
});
