/** Compaction by time keeps its period, however long one takes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { CompactionRequest } from "@quorate/proto";
import { AutoCompactor } from "../src/space/auto-compactor.ts";

const MINUTE_MS = 60_000;

test("a compaction begins a period after the one before began, at a revision of a period ago or, as in etcd, one note more", async () => {
  const clock = new ManualClock();
  const begun: [minute: number, revision: number][] = [];
  const compactor = new AutoCompactor(
    { mode: "periodic", retentionMs: 60 * MINUTE_MS },
    {
      currentRevision: () => 1 + clock.monotonicMs() / MINUTE_MS,
      isLeader: () => true,
      propose: async (request) => {
        const { revision } = CompactionRequest.decode(request);
        begun.push([clock.monotonicMs() / MINUTE_MS, revision]);
        await new Promise<void>((resolve) => void clock.after(10 * MINUTE_MS, resolve));
        return {} as never;
      },
      clock,
      logger: silentLogger,
    },
  );
  compactor.start();
  await clock.advanceAsync(185 * MINUTE_MS);
  compactor.stop();
  assert.deepEqual(begun, [
    [60, 1],
    [120, 55],
    [180, 115],
  ]);
});
