/**
 * Two members, of which one is removed: it ends soon, and started again it waits for the other
 * alone, and serves no client meanwhile.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { leaderOf, statusOf } from "../support/checks.ts";
import { withCluster } from "../support/cluster.ts";
import { runQuoratectl, tlsClientFlags } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";

test("a member without a quorum serves after a while, and is not ready before it has one", async () => {
  await withCluster({ size: 2 }, async (cluster) => {
    const [alone, other] = cluster.members;
    await Promise.all([alone.kill(), other.kill()]);
    alone.start();
    const log = () => alone.log().split("starting an etcd server").at(-1)!;
    await until("it serves all the same", () => log().includes("serving all the same"));
    await until("its ports are open", () => log().includes("serving client traffic"));
    assert.doesNotMatch(log(), /ready to serve client requests/);
    other.start();
    await until("it is ready", () => log().includes("ready to serve client requests"));
  });
});

test("of two members the leader is removed: it ends by itself; started again it waits for the other member", async () => {
  await withCluster({ size: 2 }, async (cluster) => {
    const removed = await leaderOf(cluster);
    const stays = cluster.members.find((member) => member !== removed)!;
    const id = (await statusOf(cluster, removed)).header!.memberId.toString(16);
    const ctl = (...args: string[]) =>
      runQuoratectl([stays.clientUrl], [...tlsClientFlags(cluster), ...args]);
    let result = await ctl("member", "remove", id);
    // Links are to be five seconds old.
    for (let i = 0; i < 100 && result.code !== 0 && /unhealthy/.test(result.stderr); i++) {
      await delay(200);
      result = await ctl("member", "remove", id);
    }
    assert.equal(result.code, 0, result.stderr);
    assert.deepEqual(await removed.exited, { code: 0, signal: null });
    assert.equal((await ctl("put", "k", "alone")).code, 0);

    await stays.kill();
    removed.start();
    await until("the removed member waits", () =>
      removed.log().includes("stays until the one voter that is left has committed the removal"),
    );
    // Long enough for a member to take clients without being ready.
    await delay(6000);
    assert.equal(removed.isRunning, true);
    assert.doesNotMatch(
      removed.log().split("stays until the one voter").at(-1)!,
      /ready to serve client requests|serving all the same/,
    );
    stays.start();
    await stays.waitReady();
    assert.equal((await removed.exited).code, 1);
    assert.match(
      removed.log(),
      /permanently removed from the cluster; its data in .* cannot be used again: move it away and add a new member/,
    );
    const read = await ctl("get", "k", "--print-value-only");
    assert.equal(read.stdout.trim(), "alone");
  });
});
