/** The driver does what unstorage asks of one. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { quorateDriver } from "./driver.ts";

test("items are kept below a prefix, go at their time, and changes are told", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  const driver = quorateDriver(client);
  const events = new EventTarget();
  const seen: string[] = [];
  const unwatch = await driver.watch((event, key) => {
    seen.push(`${event} ${key}`);
    if (event === "remove") events.dispatchEvent(new Event("removed"));
  });
  const removed = once(events, "removed");

  await driver.setItem("a:1", "one");
  await driver.setItems([
    { key: "a:2", value: "two" },
    { key: "b:1", value: "late", options: { ttl: 60 } },
  ]);
  await driver.setItemRaw("b:2", Uint8Array.of(0, 255));
  assert.equal(await driver.getItem("a:1"), "one");
  assert.equal(await driver.getItem("a:3"), null);
  assert.deepEqual([...(await driver.getItemRaw("b:2"))!], [0, 255]);
  assert.deepEqual([await driver.hasItem("a:2"), await driver.hasItem("a:3")], [true, false]);
  assert.deepEqual(await driver.getItems([{ key: "a:2" }, { key: "none" }]), [
    { key: "a:2", value: "two" },
    { key: "none", value: null },
  ]);
  assert.deepEqual(await driver.getKeys("a:"), ["a:1", "a:2"]);
  await driver.removeItem("a:1");
  await removed;
  assert.equal(seen[0], "update a:1");
  assert.equal(seen.at(-1), "remove a:1");
  assert.equal(seen.length, 5);
  unwatch();

  await cluster.advanceLeases(70);
  assert.deepEqual(await driver.getKeys(), ["a:2", "b:2"]);
  await driver.clear("b:");
  assert.deepEqual(await driver.getKeys(), ["a:2"]);
  driver.dispose();
});
