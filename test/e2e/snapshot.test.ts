/**
 * A member that was away for longer than the log reaches gets a snapshot, while writes go on.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLost, leaderOf } from "../support/checks.ts";
import { type ClusterOptions, withCluster } from "../support/cluster.ts";
import { memberUnderTest } from "../support/executables.ts";
import { metric } from "../support/http.ts";
import { until } from "../support/until.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

/** A short log. Debian's etcd keeps 5000 entries behind a snapshot, whatever its flags say. */
const shortLog =
  memberUnderTest.name === "etcd"
    ? { flags: ["--snapshot-count=100"], reachEntries: 5000 }
    : { flags: ["--snapshot-count=100", "--snapshot-catchup-entries=50"], reachEntries: 50 };
const options: ClusterOptions = { size: 3, flags: shortLog.flags };
/** More writes than the log can hold while the member is away. */
const writesMeanwhile = shortLog.reachEntries + 1000;
const connections = 20;

const sent = "etcd_network_snapshot_send_success";
const sendFailed = "etcd_network_snapshot_send_failures";
const sending = "etcd_network_snapshot_send_inflights_total";
const received = "etcd_network_snapshot_receive_success";

test("a member that was away catches up by snapshot while writes go on", async () => {
  await withCluster(options, async (cluster) => {
    const writers = new Writers(cluster, connections, 200);
    try {
      await writers.more(100);
      const leader = await leaderOf(cluster);
      const away = cluster.members.find((member) => member !== leader)!;
      await away.kill();
      await writers.more(writesMeanwhile);
      away.start();
      await away.waitReady();
      await writers.more(500);
      await writers.stop();
      await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
      assert.ok((await metric(cluster, away, received)) >= 1, "the member did not need a snapshot");
    } finally {
      await writers.stop();
    }
  });
});

test("a member that is killed in the middle of receiving a snapshot comes back and gets it", async (t) => {
  const wantedKills = 2;
  const mostAttempts = 20;
  await withCluster(options, async (cluster) => {
    // Large values, so that sending takes long enough to be interrupted.
    const writers = new Writers(cluster, connections, 8 * 1024);
    try {
      await writers.more(100);
      const leader = await leaderOf(cluster);
      const away = cluster.members.find((member) => member !== leader)!;
      // Leadership may move meanwhile: either of the others may be the one that sends.
      const others = cluster.members.filter((member) => member !== away);
      const sum = async (name: string): Promise<number> => {
        const each = await Promise.all(others.map((member) => metric(cluster, member, name)));
        return each.reduce((total, one) => total + one, 0);
      };
      const snapshotCounts = async () => ({
        sent: await sum(sent),
        failed: await sum(sendFailed),
        sending: await sum(sending),
      });
      await away.kill();
      let kills = 0;
      for (let attempt = 0; kills < wantedKills; attempt++) {
        assert.ok(
          attempt < mostAttempts,
          `only ${kills} of ${attempt} kills met a snapshot on its way`,
        );
        await writers.more(writesMeanwhile);
        const before = await snapshotCounts();
        away.start();
        const isOnItsWay = async () => {
          const now = await snapshotCounts();
          return now.sending > 0 || now.sent > before.sent;
        };
        await until("a snapshot is on its way", isOnItsWay, 1);
        await away.kill();
        await until("it has failed or arrived", async () => {
          const now = await snapshotCounts();
          return now.failed > before.failed || now.sent > before.sent;
        });
        if ((await snapshotCounts()).sent === before.sent) kills++;
      }
      t.diagnostic(
        `${kills} kills while a snapshot was on its way, ${writers.acknowledged.size} writes`,
      );
      away.start();
      await away.waitReady();
      await writers.more(200);
      await writers.stop();
      await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
    } finally {
      await writers.stop();
    }
  });
});
