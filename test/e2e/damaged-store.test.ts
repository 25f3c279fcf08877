/**
 * One byte of a member's store has changed while it was down: what it says, and each way out that
 * it names.
 * @slow
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { quorateutl } from "@quorate/ctl";
import { assertEqualHashes, assertNothingLost, leaderOf } from "../support/checks.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import type { TestMember } from "../support/member.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

const PATIENT = "--command-timeout=30s";

/** Changes one byte of a table of a member that is down. */
async function damage({ options }: TestMember): Promise<void> {
  // Opened and closed, so that what was in LevelDB's own log is a table.
  assert.equal((await runInProcess(quorateutl, ["backend", "verify", options.dataDir])).code, 0);
  const db = join(options.dataDir, "member/store/db");
  const table = join(db, readdirSync(db).find((name) => name.endsWith(".ldb"))!);
  const bytes = readFileSync(table);
  writeFileSync(table, bytes.with(20, bytes[20] ^ 1));
}

async function stoppedFollower(cluster: TestCluster): Promise<TestMember> {
  const leader = await leaderOf(cluster);
  const member = cluster.members.find((one) => one !== leader)!;
  await member.terminate();
  await damage(member);
  return member;
}

/** Starts a member that is to end by itself; what it said last. */
async function refusal(member: TestMember, ...flags: string[]): Promise<string> {
  member.start(flags);
  assert.deepEqual(await member.exited, { code: 1, signal: null });
  return member.logTail(1);
}

test("a log that begins with the first entry makes the store again, if the member may heal itself", async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const writers = new Writers(cluster, 4, 16, 10);
    try {
      await writers.more(50);
      const member = await stoppedFollower(cluster);
      await writers.more(50);
      const said = await refusal(member);
      assert.match(
        said,
        /\.ldb: damaged at byte 0: .*What to do next: its log begins with the first entry, so with --self-heal/,
      );
      member.start(["--self-heal"]);
      await member.waitReady();
      assert.match(
        member.log(),
        /the store is damaged; it is moved aside, and a new one is made from the log/,
      );
      assert.ok(readdirSync(join(member.options.dataDir, "member")).includes("store.damaged-1"));
      // It starts again on what it made.
      await member.terminate();
      member.start();
      await member.waitReady();
    } finally {
      await writers.stop();
    }
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
    await assertEqualHashes(cluster);
  });
});

test("a log that begins later does not: the member names the commands, and they work", async () => {
  const flags = ["--snapshot-count=20", "--snapshot-catchup-entries=5"];
  await withCluster({ size: 3, flags }, async (cluster) => {
    const writers = new Writers(cluster, 4, 16, 10);
    try {
      await writers.more(100);
      const member = await stoppedFollower(cluster);
      const { name, options } = member;
      for (const more of [[], ["--self-heal"]]) {
        const said = await refusal(member, ...more);
        assert.match(said, /\.ldb: damaged at byte 0: .*What to do next: with other members: /);
        assert.ok(!said.includes("so with --self-heal"), said);
        assert.ok(said.includes(`quoratectl member replace ${name} NEW-PEER-URL`), said);
      }
      const said = member.logTail(1).replaceAll('\\"', '"');
      const id = /"quoratectl member remove ([0-9a-f]+)"/.exec(said)?.[1] ?? assert.fail(said);
      const running = cluster.members.filter((one) => one.isRunning).map((one) => one.clientUrl);
      await until(
        `${name} is removed`,
        async () =>
          (await runQuoratectl(running, [PATIENT, "member", "remove", id, "--idempotent"])).code ===
          0,
      );
      assert.ok(said.includes(`"mv ${options.dataDir} ${options.dataDir}.damaged"`), said);
      renameSync(options.dataDir, `${options.dataDir}.damaged`);
      let added = "";
      await until(`${name} is added`, async () => {
        const result = await runQuoratectl(running, [
          PATIENT,
          "member",
          "add",
          name,
          "--learner",
          `--peer-urls=${options.peerUrl}`,
        ]);
        added = result.stdout;
        return result.code === 0;
      });
      const members = /^ETCD_INITIAL_CLUSTER="(.*)"$/m.exec(added)![1];
      member.start([
        `--initial-cluster=${members}`,
        "--initial-cluster-state=existing",
        "--auto-promote",
      ]);
      await member.waitReady();
      await writers.more(20);
    } finally {
      await writers.stop();
    }
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
    await assertEqualHashes(cluster);
  });
});

test("snapshot files that are empty or damaged do not matter beside a sound log", async () => {
  await withCluster(
    { size: 1, flags: ["--snapshot-count=20", "--snapshot-catchup-entries=5"] },
    async (cluster) => {
      const [member] = cluster.members as [TestMember];
      const writers = new Writers(cluster, 2, 16, 10);
      await writers.more(100);
      await writers.stop();
      await member.terminate();
      const dir = join(member.options.dataDir, "member/snap");
      const files = readdirSync(dir).filter((name) => name.endsWith(".snap"));
      assert.ok(files.length >= 2, files.join());
      for (const [i, name] of files.entries()) {
        const bytes = readFileSync(join(dir, name));
        writeFileSync(join(dir, name), i % 2 === 0 ? "" : bytes.with(10, bytes[10] ^ 0xff));
      }
      member.start();
      await member.waitReady();
      await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
    },
  );
});
