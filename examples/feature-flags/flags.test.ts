/** Flags are on for a share of the users, which grows and does not change otherwise. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { Flags, setFlag } from "./flags.ts";

test("a flag is on for a share of the users, always the same ones", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  await using flags = await Flags.open(client);
  const users = Array.from({ length: 1000 }, (_, i) => `user-${i}`);
  const share = async (percent: number): Promise<Set<string>> => {
    await flags.reached(await setFlag(client, "dark", percent));
    return new Set(users.filter((user) => flags.isOn("dark", user)));
  };
  assert.equal(flags.isOn("dark", "user-1"), false);
  const few = await share(10);
  assert.ok(few.size > 50 && few.size < 150, `${few.size}`);
  const many = await share(50);
  assert.deepEqual(
    [...few].filter((user) => !many.has(user)),
    [],
  );
  assert.equal((await share(100)).size, 1000);
  assert.equal((await share(0)).size, 0);
});
