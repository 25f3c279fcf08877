/**
 * Members are killed under load: nothing that was acknowledged may be lost, and service must come
 * back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLost, leaderOf } from "../support/checks.ts";
import { withCluster } from "../support/cluster.ts";
import { MachinePauses } from "../support/pauses.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

const connections = 100;
/** Between two writes of a connection; without it so many leave no processor to anything else. */
const pauseMs = 40;
/**
 * Within so long after the leader's death a write that is started then must succeed, where the
 * machine does not stand still.
 */
const resumeLimitMs = 3000;
/**
 * Two members that stand for election in the same moment have one vote each, and stand again a
 * timeout later: that is Raft, and may happen to one of the kills. That it happens to all of so
 * many is no accident.
 */
const mostKills = 5;
/** All members are killed so many times. QUORATE_SOAK=1 (./dev soak) runs the full count. */
const crashes = process.env["QUORATE_SOAK"] ? 20 : 3;
const writesBetweenCrashes = 1000;

test("the leader gets kill -9 under load: nothing acknowledged is lost, writes go on, the killed member catches up", async (t) => {
  await withCluster({ size: 3 }, async (cluster) => {
    const writers = new Writers(cluster, connections, 16, pauseMs);
    try {
      await writers.more(writesBetweenCrashes);
      for (let kills = 1, isLate = true; isLate; kills++) {
        assert.ok(
          kills <= mostKills,
          `no write within ${resumeLimitMs} ms after any of ${mostKills} deaths of the leader`,
        );
        const leader = await leaderOf(cluster);
        const pauses = new MachinePauses(cluster.dir);
        await leader.kill();
        const gapMs = await writers.nextStarted();
        await pauses.stop();
        isLate = gapMs > resumeLimitMs + pauses.longestMs;
        const paused = `(the machine paused for ${pauses.longestMs.toFixed(0)} ms)`;
        t.diagnostic(
          `${writers.acknowledged.size} writes acknowledged; the next came ${gapMs.toFixed(0)} ms after the kill ${paused}`,
        );
        await writers.more(writesBetweenCrashes);

        leader.start();
        await leader.waitReady();
        await writers.more(writesBetweenCrashes);
      }
    } finally {
      await writers.stop();
    }
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
  });
});

test(`all members get kill -9 at once, ${crashes} times: nothing acknowledged is lost`, async (t) => {
  await withCluster({ size: 3 }, async (cluster) => {
    const writers = new Writers(cluster, connections, 16, pauseMs);
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
