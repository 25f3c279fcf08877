/** Each job is done, also where its worker ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { Jobs } from "./jobs.ts";

test("each job is done by one worker, and that of a worker that dies by another", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  const jobs = new Jobs<{ page: number }>(client, "crawl");
  const stop = new AbortController();
  const done: number[] = [];
  const all = Promise.withResolvers<void>();

  // A worker that takes the first job and dies.
  const dying = await client.session({ ttlSeconds: 60 });
  const taken = Promise.withResolvers<void>();
  const hangs = (): Promise<void> => {
    taken.resolve();
    return new Promise(() => {});
  };
  void jobs.work(dying, hangs, stop.signal);
  await jobs.add({ page: 0 });
  await taken.promise;

  const working = [1, 2].map(async () => {
    await using session = await client.session({ ttlSeconds: 60 });
    const run = async ({ page }: { page: number }): Promise<void> => {
      if (done.push(page) === 6) all.resolve();
    };
    await jobs.work(session, run, stop.signal);
  });
  for (let page = 1; page <= 5; page++) await jobs.add({ page });
  await dying.close();
  await all.promise;
  stop.abort();
  await Promise.all(working);
  assert.deepEqual(done.sort(), [0, 1, 2, 3, 4, 5]);
});
