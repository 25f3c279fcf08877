/** Members are killed under load: nothing that was acknowledged may be lost, and service must come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLost, leaderOf } from "../support/checks.ts";
import { withCluster } from "../support/cluster.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

const connections = 100;
/** Within so long after the leader's death a write that is started then must succeed. */
const resumeLimitMs = 3000;
/** All members are killed so many times. QUORATE_SOAK=1 (npm run soak) runs the full count. */
const crashes = process.env["QUORATE_SOAK"] ? 20 : 3;
const writesBetweenCrashes = 1000;

test("the leader gets kill -9 under load: nothing acknowledged is lost, writes go on, the killed member catches up", async (t) => {
  await withCluster({ size: 3 }, async (cluster) => {
    const writers = new Writers(cluster, connections);
    try {
      await writers.more(writesBetweenCrashes);
      const leader = await leaderOf(cluster);
      await leader.kill();
      const gapMs = await writers.nextStarted();
      t.diagnostic(`${writers.acknowledged.size} writes acknowledged; after the kill, the next came ${gapMs.toFixed(0)} ms later`);
      assert.ok(gapMs < resumeLimitMs, `no write for ${gapMs} ms after the leader's death`);
      await writers.more(writesBetweenCrashes);

      leader.start();
      await leader.waitReady();
      await writers.more(writesBetweenCrashes);
    } finally {
      await writers.stop();
    }
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
  });
});

test(`all members get kill -9 at once, ${crashes} times: nothing acknowledged is lost`, async (t) => {
  await withCluster({ size: 3 }, async (cluster) => {
    const writers = new Writers(cluster, connections);
    try {
      for (let crash = 1; crash <= crashes; crash++) {
        await writers.more(writesBetweenCrashes);
        await Promise.all(cluster.members.map((member) => member.kill()));
        for (const member of cluster.members) member.start();
        await cluster.waitReady();
      }
      await writers.more(writesBetweenCrashes);
    } finally {
      await writers.stop();
    }
    t.diagnostic(`${writers.acknowledged.size} writes acknowledged`);
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
  });
});
