/** Addresses are there while their programs are. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { announce, Directory } from "./services.ts";

test("an address is there while its session lasts, and callers take turns", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  await using directory = await Directory.of(client, "web");
  assert.throws(() => directory.next(), /nobody serves/);
  const until = async (expected: readonly string[]): Promise<void> => {
    while (directory.addresses.join() !== expected.join())
      await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const one = await client.session({ ttlSeconds: 60 });
  await using other = await client.session({ ttlSeconds: 60 });
  await announce(client, one, "web", "10.0.0.1:80");
  await announce(client, other, "web", "10.0.0.2:80");
  await announce(client, other, "mail", "10.0.0.2:25");
  await until(["10.0.0.1:80", "10.0.0.2:80"]);
  assert.notEqual(directory.next(), directory.next());
  await one.close();
  await until(["10.0.0.2:80"]);
});
