/**
 * Dead members are replaced while a majority lives: one of three, two of five, with the commands of
 * the operations guide. And commands that change the membership can be repeated when their outcome
 * is unknown.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { quoratectl } from "@quorate/ctl";
import { assertNothingLost, leaderOf } from "../support/checks.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { LiveRun, type ProgramResult } from "../support/ctl-io.ts";
import type { TestMember } from "../support/member.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

const PATIENT = "--command-timeout=30s";

function ctl(cluster: TestCluster, ...args: string[]): Promise<ProgramResult> {
  const endpoints = cluster.members
    .filter((member) => member.isRunning)
    .map((member) => member.clientUrl);
  return runQuoratectl(endpoints, [PATIENT, ...args]);
}

/** The flags for the new member out of what a command printed for it. */
function joinFlags(printed: string): string[] {
  const variable = (name: string) =>
    new RegExp(`^ETCD_${name}="(.*)"$`, "m").exec(printed)?.[1] ??
    assert.fail(`no ETCD_${name} in\n${printed}`);
  return [
    `--initial-cluster=${variable("INITIAL_CLUSTER")}`,
    `--initial-cluster-state=${variable("INITIAL_CLUSTER_STATE")}`,
  ];
}

async function replace(cluster: TestCluster, dead: TestMember, name: string): Promise<void> {
  const member = await cluster.prepareMember(name);
  const endpoints = cluster.members.filter((one) => one.isRunning).map((one) => one.clientUrl);
  const args = [
    `--endpoints=${endpoints}`,
    PATIENT,
    "member",
    "replace",
    dead.name,
    member.options.peerUrl,
    `--name=${name}`,
  ];
  const run = new LiveRun(quoratectl, [...args, "--wait-timeout=3m"]);
  await run.until((stdout) => stdout.includes("ETCD_INITIAL_CLUSTER_STATE"));
  member.start(joinFlags(run.stdout));
  const { code, stdout, stderr } = await run.result;
  assert.equal(code, 0, stderr);
  assert.ok(stdout.includes(`has replaced ${dead.name}`), stdout);
  await member.waitReady();
  cluster.members.splice(cluster.members.indexOf(dead), 1, member);
}

for (const [size, deadCount] of [
  [3, 1],
  [5, 2],
] as const) {
  test(`${deadCount} of ${size} members are dead: each is replaced while clients write`, async () => {
    await withCluster({ size }, async (cluster) => {
      const writers = new Writers(cluster, 4, 16, 10);
      try {
        await writers.more(20);
        const leader = await leaderOf(cluster);
        const dead = cluster.members.filter((member) => member !== leader).slice(0, deadCount);
        for (const member of dead) await member.kill();
        await writers.more(20);
        for (const [i, member] of dead.entries()) {
          await replace(cluster, member, `new${i}`);
          await writers.more(20);
        }
      } finally {
        await writers.stop();
      }
      await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
      const list = await ctl(cluster, "member", "list");
      assert.equal(list.stdout.trimEnd().split("\n").length, size, list.stdout);
      assert.equal(list.stdout.match(/, started, .*, false$/gm)?.length, size, list.stdout);
    });
  });
}

test("a change that was made is recognised when it is asked for again", async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const [url, other] = ["http://127.0.0.1:1", "http://127.0.0.1:2"] as const;
    const add = async (...args: string[]): Promise<ProgramResult> => {
      let result: ProgramResult | undefined;
      await until("the links of the member that is asked are old enough", async () => {
        result = await ctl(cluster, "member", "add", ...args);
        return !result.stderr.includes("unhealthy cluster");
      });
      return result!;
    };
    const first = await add("m3", "--learner", `--peer-urls=${url},${other}`);
    assert.equal(first.code, 0, first.stderr);
    // The same command, and with the URLs in another order: what the first printed.
    for (const urls of [`${url},${other}`, `${other},${url}`]) {
      const again = await add("m3", "--learner", `--peer-urls=${urls}`);
      assert.equal(again.code, 0, again.stderr);
      assert.match(
        again.stderr,
        /^Note: member [0-9a-f]+ with these peer URLs was added before; nothing was changed$/m,
      );
      assert.deepEqual(again.stdout.split("\n")[0], first.stdout.split("\n")[0]);
      assert.deepEqual(
        joinFlags(again.stdout)[0].split(",").sort(),
        joinFlags(first.stdout)[0].split(",").sort(),
      );
    }
    // Another member, or another kind of it, is not what was asked for.
    for (const [args, note] of [
      [["m3", `--peer-urls=${url}`, "--learner"], ""],
      [["x", `--peer-urls=${cluster.members[0].options.peerUrl}`], ""],
      [["m3", `--peer-urls=${url},${other}`], "is a learner; "],
    ] as const) {
      const refused = await add(...args);
      assert.equal(refused.code, 1, refused.stdout);
      assert.match(
        refused.stderr,
        /^Error: etcdserver: (?:Peer URLs already exists|member ID already exist)$/m,
      );
      assert.ok(refused.stderr.includes(note) && refused.stdout === "", refused.stderr);
    }
    const id = /^Member +([0-9a-f]+) added/.exec(first.stdout)![1];
    const removed = await ctl(cluster, "member", "remove", id, "--idempotent");
    assert.deepEqual([removed.code, removed.stderr], [0, ""]);
    const twice = await ctl(cluster, "member", "remove", id, "--idempotent");
    assert.deepEqual([twice.code, twice.stdout], [0, removed.stdout]);
    assert.match(twice.stderr, /^Note: no member has the id/m);
    assert.equal((await ctl(cluster, "member", "remove", id)).code, 1);

    const voter = (await ctl(cluster, "member", "list")).stdout.split(",")[0];
    const promoted = await ctl(cluster, "member", "promote", voter, "--idempotent");
    assert.equal(promoted.code, 0, promoted.stderr);
    assert.match(promoted.stderr, /is a voter already; nothing was changed/);
    assert.equal((await ctl(cluster, "member", "promote", voter)).code, 1);
    assert.equal((await ctl(cluster, "member", "promote", "1234", "--idempotent")).code, 1);
  });
});

test("a second voter that takes the quorum until it is started is recognised as well", async () => {
  await withCluster({ size: 1 }, async (cluster) => {
    const member = await cluster.prepareMember("m1");
    const args = ["member", "add", "m1", `--peer-urls=${member.options.peerUrl}`];
    const first = await ctl(cluster, ...args);
    assert.equal(first.code, 0, first.stderr);
    const again = await runQuoratectl(cluster.endpoints, ["--command-timeout=1s", ...args]);
    assert.equal(again.code, 0, again.stderr);
    assert.equal(again.stdout.split("\n")[0], first.stdout.split("\n")[0]);
    member.start(joinFlags(again.stdout));
    cluster.members.push(member);
    await cluster.waitReady();
  });
});
