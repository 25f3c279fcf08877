/**
 * A rolling restart of real members: puts go on, and what was acknowledged is there.
 * @slow
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runningPid, startCluster, stopCluster } from "../../scripts/cluster/control.ts";
import { localCluster } from "../../scripts/cluster/layout.ts";
import { restartRolling } from "../../scripts/cluster/rolling.ts";
import { ctl } from "../../scripts/cluster/tools.ts";
import { freePorts } from "../support/ports.ts";

test("quorate-cluster restart: one member at a time, while clients write", async () => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-rolling-"));
  const ports = await freePorts(6);
  const plan = {
    ...localCluster(dir),
    members: [0, 1, 2].map((i) => ({
      name: `infra${i}`,
      clientPort: ports[2 * i],
      peerPort: ports[2 * i + 1],
    })),
  };
  const said: string[] = [];
  const say = (line: string) => void said.push(line);
  try {
    assert.equal(await startCluster(plan, say), true, said.join("\n"));
    const before = plan.members.map((member) => runningPid(plan, member));
    let isOver = false;
    const acknowledged: string[] = [];
    const write = async (): Promise<void> => {
      for (let i = 0; !isOver; i++) {
        // At whichever member answers: one of three is down at times.
        for (const member of plan.members) {
          const key = `k${i}`;
          const put = ["put", key, "v", "--command-timeout=10s", "--dial-timeout=2s"];
          const done = await ctl(plan, member, ...put).catch(() => "");
          if (!done.startsWith("OK")) continue;
          acknowledged.push(key);
          break;
        }
      }
    };
    const writing = write();
    const isDone = await restartRolling(plan, say);
    isOver = true;
    await writing;
    assert.equal(isDone, true, said.join("\n"));
    const after = plan.members.map((member) => runningPid(plan, member));
    assert.ok(after.every((pid, i) => pid !== undefined && pid !== before[i]));
    const stops = said.filter((line) => / stopped /.test(line)).map((line) => line.split(" ")[0]);
    assert.equal(new Set(stops).size, 3);
    assert.ok(acknowledged.length > 0);
    const kept = await ctl(plan, plan.members[0], "get", "k", "--prefix", "--keys-only");
    for (const key of acknowledged) assert.ok(kept.split("\n").includes(key), key);

    // Where the others are never ready, nothing is stopped.
    const never = { role: async () => "follower", againstRestart: async () => "m1 is behind" };
    said.length = 0;
    assert.equal(await restartRolling(plan, say, never, 20), false);
    assert.deepEqual(said.slice(-2), [
      "infra0 waits: m1 is behind",
      "gave up after 0.02 s; infra0 was not stopped",
    ]);
    assert.deepEqual(
      plan.members.map((member) => runningPid(plan, member)),
      after,
    );
  } finally {
    await stopCluster(plan, () => {});
    rmSync(dir, { recursive: true, force: true });
  }
});
