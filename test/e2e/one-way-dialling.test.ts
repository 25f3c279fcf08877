/**
 * A member that no other member can dial, as behind a firewall or an address translation: it dials
 * the others, and that is enough for it to take part, to catch up from the log and from a snapshot,
 * and to lead.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLost, leaderOf, statusOf } from "../support/checks.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { metric } from "../support/http.ts";
import type { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { runQuoratectl, tlsClientFlags } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

/** Entries that the log keeps behind a snapshot: more writes than this need one. */
const flags = ["--snapshot-count=100", "--snapshot-catchup-entries=50"];
const writesMeanwhile = 1200;

async function transferTo(cluster: TestCluster, member: TestMember): Promise<void> {
  const leader = await leaderOf(cluster);
  if (leader === member) return;
  const id = (await statusOf(cluster, member)).header?.memberId.toString(16) ?? "";
  const moved = () =>
    runQuoratectl([leader.clientUrl], [...tlsClientFlags(cluster), "move-leader", id]);
  await until(
    "the leader has moved",
    async () => (await moved()).code === 0 || (await leaderOf(cluster)) === member,
  );
  await until("it leads", async () => (await leaderOf(cluster)) === member);
}

test("a member that no other member can dial takes part", async () => {
  const [dead] = await freePorts(1);
  const advertisedPeerUrlOf = (name: string) =>
    name === "m2" ? `http://127.0.0.1:${dead}` : undefined;
  await withCluster({ size: 3, flags, advertisedPeerUrlOf }, async (cluster) => {
    const [m0, m1, m2] = cluster.members as [TestMember, TestMember, TestMember];
    await transferTo(cluster, m0);
    const writers = new Writers(cluster, 10, 200);
    try {
      await writers.more(100);
      await m2.kill();
      await writers.more(writesMeanwhile);
      m2.start();
      await m2.waitReady();
      await writers.more(200);
      // The two that reach each other in both directions are a majority; now m2 has to help.
      await transferTo(cluster, m2);
      await m1.kill();
      await writers.more(100);
      m1.start();
      await m1.waitReady();
      await writers.stop();
      await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
      const received = await metric(cluster, m2, "etcd_network_snapshot_receive_success");
      assert.ok(received >= 1, "the member did not need a snapshot");
    } finally {
      await writers.stop();
    }
  });
});
