/** The adapter does what Keyv asks of a store. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { QuorateStore } from "./store.ts";

test("values are kept below a namespace, and go at their time", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  const [pages, users] = ["pages", "users"].map((namespace) =>
    Object.assign(new QuorateStore(client), { namespace }),
  );
  await pages.set("a", { title: "A" });
  await pages.setMany([
    { key: "b", value: 2 },
    { key: "late", value: 3, expires: Date.now() + 60_000 },
    { key: "gone", value: 4, expires: Date.now() - 1 },
  ]);
  await users.set("a", "ann");
  assert.deepEqual(await pages.getMany(["a", "b", "late", "gone", "none"]), [
    { title: "A" },
    2,
    3,
    undefined,
    undefined,
  ]);
  assert.deepEqual(await pages.hasMany(["a", "gone"]), [true, false]);
  const entries: unknown[] = [];
  for await (const entry of pages.iterator()) entries.push(entry);
  assert.deepEqual(entries, [
    ["a", { title: "A" }],
    ["b", 2],
    ["late", 3],
  ]);
  await cluster.advanceLeases(70);
  assert.equal((await client.get("keyv/pages:late")).count, 0);
  assert.deepEqual(await pages.deleteMany(["b", "none"]), [true, false]);
  await pages.clear();
  assert.equal(await pages.get("a"), undefined);
  assert.equal(await users.get("a"), "ann");
});
