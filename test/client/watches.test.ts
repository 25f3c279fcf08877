/** Many watches of one client, on real members. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toUtf8 } from "@quorate/client";
import { onEachServer } from "./servers.ts";

onEachServer(import.meta.filename, (server) => {
  test("who does not read holds no other watch back, and has missed nothing", async () => {
    const client = server.connect();
    const { header } = await client.put("slow/begin", "");
    const from = { prefix: true, revision: header.revision + 1 };
    const slow = client.watch("slow/", from).changes();
    const quick = client.watch("quick/", from).changes();
    const value = "x".repeat(50_000);
    const first = slow.next();
    const seen = quick.next();
    for (let i = 0; i < 100; i++) await client.put(`slow/${i}`, value);
    await client.put("quick/a", "");
    assert.equal(toUtf8((await seen).value!.kv.key), "quick/a");
    assert.equal(toUtf8((await first).value!.kv.key), "slow/0");
    for (let i = 1; i < 100; i++)
      assert.equal(toUtf8((await slow.next()).value!.kv.key), `slow/${i}`);
  });

  test("each of a thousand watches gets the changes of its own key", async () => {
    const client = server.connect();
    const { header } = await client.put("many/begin", "");
    const watches = Array.from({ length: 1100 }, (_, i) =>
      client.watch(`many/${i}`, { revision: header.revision + 1 }).changes(),
    );
    const seen = watches.map(async (watch) => toUtf8((await watch.next()).value!.kv.key));
    for (let i = 0; i < watches.length; i += 100)
      await Promise.all(Array.from({ length: 100 }, (_, at) => client.put(`many/${i + at}`, "")));
    assert.deepEqual(
      await Promise.all(seen),
      watches.map((_, i) => `many/${i}`),
    );
    await Promise.all(watches.map((watch) => watch.return(undefined)));
  });
});
