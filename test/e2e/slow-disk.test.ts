/** Real members, one of which has a slow disk: the leader hands over, and once. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { request } from "undici";
import { MemberDisk } from "../robustness/disks.ts";
import { assertNothingLost, leaderOf } from "../support/checks.ts";
import { withCluster } from "../support/cluster.ts";
import type { TestMember } from "../support/member.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

async function handOversOf({ clientUrl }: TestMember): Promise<number> {
  const text = await (await request(`${clientUrl}/metrics`)).body.text();
  return Number(/^quorate_server_slow_disk_handovers_total (\d+)$/m.exec(text)?.[1]);
}

test("a leader at 600 ms a sync beside two fast disks hands leadership over", async (t) => {
  const dir = scratchDirectory("quorate-slow-disk-", t);
  const disks = new Map(
    ["m0", "m1", "m2"].map((name) => [
      name,
      new MemberDisk(join(dir, name), join(dir, `${name}.json`), false),
    ]),
  );
  await withCluster({ size: 3, envOf: (name) => disks.get(name)!.env }, async (cluster) => {
    const writers = new Writers(cluster, 4);
    try {
      await writers.more(20);
      const slow = await leaderOf(cluster);
      disks.get(slow.name)!.slow(600);
      const startedMs = performance.now();
      await until("another member leads", async () => (await leaderOf(cluster)) !== slow);
      t.diagnostic(`another led after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
      assert.equal(await handOversOf(slow), 1);
      assert.match(
        slow.log(),
        /this leader's disk is slower than those of the others; handing leadership over/,
      );
      await writers.more(20);
    } finally {
      await writers.stop();
    }
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
  });
});
