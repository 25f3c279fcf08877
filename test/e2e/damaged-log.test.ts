/**
 * One byte of a member's log has changed while it was down: what the start and the tools say, and
 * each way out that they name, by the printed commands.
 * @slow
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { quoratectl, quorateutl } from "@quorate/ctl";
import { assertEqualHashes, assertNothingLost, leaderOf } from "../support/checks.ts";
import { withCluster } from "../support/cluster.ts";
import { LiveRun, runInProcess } from "../support/ctl-io.ts";
import type { TestMember } from "../support/member.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

/** Changes a byte in the middle of what a member that is down has written to its log. */
function damage({ options }: TestMember): string {
  const dir = join(options.dataDir, "member/wal");
  const path = join(dir, readdirSync(dir).filter((name) => name.endsWith(".wal"))[0]);
  const bytes = readFileSync(path);
  const end = bytes.findLastIndex((byte) => byte !== 0);
  writeFileSync(path, bytes.with(end >> 1, bytes[end >> 1] ^ 1));
  return path;
}

/** What the member says last, whose start is to end by itself; quotes as an operator reads them. */
async function refusal(member: TestMember, ...flags: string[]): Promise<string> {
  member.start(flags);
  assert.deepEqual(await member.exited, { code: 1, signal: null });
  return member.logTail(1).replaceAll('\\"', '"');
}

/** The arguments of a command that a text has in quotes. */
function printed(text: string, begin: string): string[] {
  const found = text.split('"').find((part) => part.startsWith(begin));
  assert.ok(found !== undefined, `${begin} is not in: ${text}`);
  return found.split(" ");
}

test("of three members: start, --self-heal, wal verify and dump-logs lead to member replace, and that helps", async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const writers = new Writers(cluster, 4, 16, 10);
    try {
      await writers.more(100);
      const leader = await leaderOf(cluster);
      const member = cluster.members.find((one) => one !== leader)!;
      await member.terminate();
      const path = damage(member);
      const place = `${path}: damaged at byte `;
      const replace = `"quoratectl member replace ${member.name} NEW-PEER-URL"`;
      for (const more of [[], ["--self-heal"]]) {
        const said = await refusal(member, ...more);
        assert.ok(said.includes(place) && said.includes(replace), said);
        assert.ok(!said.includes("wal verify"), said);
      }
      const { dataDir } = member.options;
      for (const command of [["wal", "verify"], ["dump-logs"], ["dump-logs", "--raw"]]) {
        const { code, stderr } = await runInProcess(quorateutl, [...command, dataDir]);
        assert.equal(code, 1);
        assert.ok(stderr.includes(place), stderr);
        assert.ok(!stderr.includes("wal verify"), stderr);
        // The files do not have the name, but the id, which does as well.
        assert.match(stderr, /"quoratectl member replace [0-9a-f]+ NEW-PEER-URL"/);
      }
      const said = member.logTail(1).replaceAll('\\"', '"');
      const [, ...args] = printed(said, "quoratectl member replace");
      const next = await cluster.prepareMember("m9");
      const running = cluster.members.filter((one) => one.isRunning).map((one) => one.clientUrl);
      const words = args.map((word) => (word === "NEW-PEER-URL" ? next.options.peerUrl : word));
      const replacing = new LiveRun(quoratectl, [
        `--endpoints=${running.join(",")}`,
        ...words,
        "--name",
        "m9",
      ]);
      await replacing.until((out) => out.includes("ETCD_INITIAL_CLUSTER_STATE"));
      const members = /ETCD_INITIAL_CLUSTER="(.*)"/.exec(replacing.stdout)![1];
      next.start([`--initial-cluster=${members}`, "--initial-cluster-state=existing"]);
      const { code, stderr } = await replacing.result;
      assert.equal(code, 0, stderr);
      cluster.members.splice(cluster.members.indexOf(member), 1, next);
      await writers.more(20);
    } finally {
      await writers.stop();
    }
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
    await assertEqualHashes(cluster);
  });
});

test("a member alone: it comes back from a backup, or from its own store, by the printed commands", async () => {
  await withCluster({ size: 1 }, async (cluster) => {
    const [member] = cluster.members as [TestMember];
    const { dataDir } = member.options;
    const backup = join(cluster.dir, "backup");
    const put = (key: string) => runQuoratectl(cluster.endpoints, ["put", key, "value"]);
    const has = async (key: string): Promise<boolean> =>
      (await runQuoratectl(cluster.endpoints, ["get", key])).stdout === `${key}\nvalue\n`;
    assert.equal((await put("early")).code, 0);
    const run = ["backup", "run", "--to", backup, "--once"];
    assert.equal((await runQuoratectl(cluster.endpoints, run)).code, 0);
    assert.equal((await put("late")).code, 0);
    await member.terminate();
    damage(member);
    const said = await refusal(member);

    const utl = async (words: readonly string[]): Promise<void> => {
      const { code, stderr } = await runInProcess(quorateutl, words);
      assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
    };
    const [, from, to] = printed(said, "mv ");
    assert.equal(from, dataDir);
    renameSync(from, to);
    const [, ...restore] = printed(said, "quorateutl backup restore");
    await utl(restore.map((word) => (word === "BACKUP" ? backup : word)));
    member.start();
    await member.waitReady();
    await until("the backup's key is there", () => has("early"));
    assert.equal(await has("late"), false);

    // Without the backup: the store of the damaged member has what was applied.
    await member.terminate();
    renameSync(dataDir, `${dataDir}.restored`);
    const file = join(cluster.dir, "saved.db");
    const named = (words: string[]) => words.map((word) => (word === "FILE" ? file : word));
    await utl(named(printed(said, "quorateutl snapshot save").slice(1)));
    await utl(named(printed(said, "quorateutl snapshot restore").slice(1)));
    member.start();
    await member.waitReady();
    await until("all keys are there", async () => (await has("early")) && (await has("late")));
  });
});
