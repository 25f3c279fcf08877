/** Compaction of history: one of several servers compacts in each interval. */
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import { Compactor } from "../src/storage/compactor.ts";
import { endOfKey } from "../src/storage/etcd-values.ts";
import { MemoryCluster } from "../testing/memory-cluster.ts";

const INTERVAL_MS = 300_000;
const KEY = fromUtf8("compact_rev_key");

function server(cluster: MemoryCluster): { compactor: Compactor; clock: ManualClock } {
  const clock = new ManualClock();
  const deps = { client: cluster, clock, logger: silentLogger };
  return { compactor: new Compactor(INTERVAL_MS, deps), clock };
}

function writeSome(cluster: MemoryCluster): number {
  for (let n = 0; n < 5; n++) cluster.write(fromUtf8("/registry/a"), fromUtf8(String(n)));
  return cluster.revision;
}

async function pass({ clock }: { clock: ManualClock }): Promise<void> {
  clock.advance(INTERVAL_MS);
  for (let n = 0; n < 10; n++) await turn();
}

test("history of the last interval stays", async () => {
  const cluster = new MemoryCluster();
  const one = server(cluster);
  writeSome(cluster);
  await pass(one);
  assert.equal(cluster.compactRevision, 0);
  const first = cluster.revision;
  writeSome(cluster);
  await pass(one);
  assert.equal(cluster.compactRevision, first);
  assert.equal(one.compactor.compactRevision, first);
  one.compactor.stop();
  await pass(one);
  assert.equal(cluster.compactRevision, first);
});

test("of two servers one compacts in an interval, and the other learns of it", async () => {
  const cluster = new MemoryCluster();
  const [one, two] = [server(cluster), server(cluster)];
  let compactions = 0;
  const { compact } = cluster;
  cluster.compact = (revision) => {
    compactions++;
    return compact.call(cluster, revision);
  };
  for (let round = 0; round < 5; round++) {
    writeSome(cluster);
    await pass(one);
    await pass(two);
  }
  assert.equal(compactions, 4);
  assert.equal(one.compactor.compactRevision, cluster.compactRevision);
  assert.equal(two.compactor.compactRevision, cluster.compactRevision);
  // The other takes over.
  one.compactor.stop();
  const before = cluster.compactRevision;
  for (let round = 0; round < 3; round++) {
    writeSome(cluster);
    await pass(two);
  }
  assert.ok(cluster.compactRevision > before);
  const { records } = await cluster.range(KEY, { end: endOfKey(KEY), revision: 0, limit: 1 });
  assert.equal(Number(toUtf8(records[0].value)), cluster.compactRevision);
  two.compactor.stop();
});

test("a round that fails changes nothing, and a lost watch is opened again", async () => {
  const cluster = new MemoryCluster();
  const one = server(cluster);
  await pass(one);
  cluster.onRequest = () => {
    throw new Error("no member responds");
  };
  await pass(one);
  assert.equal(cluster.compactRevision, 0);
  cluster.breakWatches(new Error("lost"));
  for (let n = 0; n < 10; n++) await turn();
  cluster.onRequest = () => {};
  one.clock.advance(1000);
  for (let n = 0; n < 10; n++) await turn();
  cluster.write(KEY, fromUtf8("3"));
  for (let n = 0; n < 10; n++) await turn();
  assert.equal(one.compactor.compactRevision, 3);
  one.compactor.stop();
});
