/** Settings are taken on while the program runs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { liveSettings, type Settings } from "./settings.ts";

test("settings come with defaults, and with every change, also over a compaction", async () => {
  await using cluster = await testCluster();
  const client = cluster.client({ timeoutMs: 60_000 });
  await client.put("config/logLevel", '"debug"');
  const stop = new AbortController();
  const applied: Settings[] = [];
  const steps = [
    () => client.put("config/maxConnections", "7"),
    () => cluster.compactUnderWatches(() => cluster.members[0]!.client().delete("config/logLevel")),
    async () => stop.abort(),
  ];
  await liveSettings(
    client,
    (settings) => {
      applied.push(settings);
      void steps.shift()?.();
    },
    stop.signal,
  );
  assert.deepEqual(applied.slice(0, 2), [
    { logLevel: "debug", maxConnections: 100 },
    { logLevel: "debug", maxConnections: 7 },
  ]);
  assert.deepEqual(applied.at(-1), { logLevel: "info", maxConnections: 7 });
});
