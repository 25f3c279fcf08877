/** A task runs once at each time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { claimTime, every } from "./cron.ts";

test("of all programs one runs the task at each time", async () => {
  await using cluster = await testCluster();
  const stop = new AbortController();
  const times: number[] = [];
  const run = async (timeMs: number): Promise<void> => {
    if (times.push(timeMs) === 5) stop.abort();
  };
  const programs = [1, 2, 3].map(() => {
    const client = cluster.client({ timeoutMs: 60_000 });
    return every(client, "report", 50, run, stop.signal);
  });
  await Promise.all(programs);
  assert.equal(new Set(times).size, times.length);
});

test("the key of a time ends by itself, and no lease is left of those that came second", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  const claims = await Promise.all([1, 2, 3].map(() => claimTime(client, "report", 1000, 60)));
  assert.equal(claims.filter((isFirst) => isFirst).length, 1);
  assert.equal((await client.leases.list()).leases.length, 1);
  await cluster.advanceLeases(70);
  assert.equal((await client.get("cron/", { prefix: true })).count, 0);
});
