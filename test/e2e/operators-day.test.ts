/**
 * An operator's day: a cluster of three grows to five through learners, loses a member for good and
 * gets another in its place, hands leadership on, and shrinks to three again, while clients write
 * without pause. Nothing acknowledged may be lost, and no client may wait long.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { assertNothingLost, leaderOf, statusOf } from "../support/checks.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import type { ProgramResult } from "../support/ctl-io.ts";
import type { TestMember } from "../support/member.ts";
import { MachinePauses } from "../support/pauses.ts";
import { runQuoratectl, tlsClientFlags } from "../support/quoratectl.ts";
import { Writers, writerPrefix } from "../support/writers.ts";

const connections = 20;
/** Between two writes of a connection. */
const pauseMs = 60;
const writesBetweenSteps = 200;
/**
 * At no time may all clients wait longer for an acknowledgement, where the machine does not stand
 * still.
 */
const gapLimitMs = 3000;
/** A step that the cluster is not ready for yet is tried again for so long. */
const stepLimitMs = 60_000;

/**
 * An answer that comes late on a busy machine is waited for: a change that is asked for twice may
 * be refused.
 */
const PATIENT = "--command-timeout=30s";

/**
 * What may pass by itself: links that are young, a learner that has not caught up, a change of
 * leaders.
 */
const passing =
  /unhealthy cluster|in sync with leader|leader changed|no leader|timed out|server stopped|deadline exceeded|not leader/i;

/** What a change says that is asked for once more after it was done, but not answered. */
const doneBefore = /can only promote a learner member(?! which)|member not found/i;

/**
 * Runs a command until it works, or is found to have worked before; fails at once where no time
 * will help.
 */
async function ctl(cluster: TestCluster, ...args: string[]): Promise<ProgramResult> {
  const endMs = performance.now() + stepLimitMs;
  for (let isRepeated = false; ; isRepeated = true) {
    const endpoints = cluster.members
      .filter((member) => member.isRunning)
      .map((member) => member.clientUrl);
    const result = await runQuoratectl(endpoints, [...tlsClientFlags(cluster), PATIENT, ...args]);
    if (result.code === 0 || (isRepeated && doneBefore.test(result.stderr))) return result;
    if (!passing.test(result.stderr) || performance.now() > endMs)
      assert.fail(`${args.join(" ")}: ${result.stderr}`);
    await delay(200);
  }
}

/** Starts a member with what `member add` or `member replace` printed for it. */
function startWith(member: TestMember, printed: string): void {
  const variable = (name: string) =>
    new RegExp(`^ETCD_${name}="(.*)"$`, "m").exec(printed)?.[1] ??
    assert.fail(`no ETCD_${name} in\n${printed}`);
  assert.equal(variable("NAME"), member.name);
  assert.equal(variable("INITIAL_ADVERTISE_PEER_URLS"), member.options.peerUrl);
  member.start([
    `--initial-cluster=${variable("INITIAL_CLUSTER")}`,
    `--initial-cluster-state=${variable("INITIAL_CLUSTER_STATE")}`,
  ]);
}

async function idOf(cluster: TestCluster, member: TestMember): Promise<string> {
  return (await statusOf(cluster, member)).header!.memberId.toString(16);
}

async function grow(cluster: TestCluster, name: string): Promise<void> {
  const member = await cluster.prepareMember(name);
  const added = await ctl(
    cluster,
    "member",
    "add",
    name,
    "--learner",
    `--peer-urls=${member.options.peerUrl}`,
  );
  const id = /^Member +([0-9a-f]+) added as learner to cluster +[0-9a-f]+$/m.exec(
    added.stdout,
  )?.[1];
  assert.ok(id !== undefined, added.stdout);
  startWith(member, added.stdout);
  // It does not take linearizable reads before it votes, so it is not asked whether it is ready.
  const promoted = await ctl(cluster, "member", "promote", id);
  if (promoted.code === 0)
    assert.match(
      promoted.stdout,
      new RegExp(`^Member +${id} promoted in cluster +[0-9a-f]+$`, "m"),
    );
  await member.waitReady();
  cluster.members.push(member);
}

/** Replaces a member that has died, with a command that is interrupted once and given again. */
async function replace(cluster: TestCluster, dead: TestMember, name: string): Promise<void> {
  const member = await cluster.prepareMember(name);
  const endpoints = cluster.members.filter((one) => one.isRunning).map((one) => one.clientUrl);
  const args = [
    ...tlsClientFlags(cluster),
    PATIENT,
    "member",
    "replace",
    dead.name,
    member.options.peerUrl,
    `--name=${name}`,
  ];
  let first: ProgramResult;
  const endMs = performance.now() + stepLimitMs;
  do {
    assert.ok(performance.now() < endMs, "the cluster did not become healthy");
    first = await runQuoratectl(endpoints, [...args, "--wait-timeout=0s"]);
    assert.equal(first.code, 1, first.stdout);
    assert.match(first.stderr, /run the same command again to continue/);
  } while (!first.stdout.includes("added as learner"));
  startWith(member, first.stdout);
  const second = await runQuoratectl(endpoints, args);
  assert.equal(second.code, 0, second.stderr);
  assert.match(
    second.stdout,
    new RegExp(
      `has caught up and is a voter now\\.[^]*\\(${dead.name}\\) removed\\.[^]*has replaced ${dead.name}`,
    ),
  );
  await member.waitReady();
  cluster.members.splice(cluster.members.indexOf(dead), 1, member);
  const third = await runQuoratectl(cluster.endpoints, args);
  assert.deepEqual([third.code, third.stderr], [0, ""]);
  // The dead one comes back with its data, which does not know that it was removed: the others
  // notify it.
  dead.start();
  assert.deepEqual(await dead.exited, { code: 0, signal: null });
  assert.match(dead.log(), /the member has been permanently removed from the cluster/);
}

/** Removes a member; it must end by itself and must not come back. */
async function shrink(cluster: TestCluster, member: TestMember): Promise<void> {
  const id = await idOf(cluster, member);
  cluster.members.splice(cluster.members.indexOf(member), 1);
  const removed = await ctl(cluster, "member", "remove", id);
  if (removed.code === 0)
    assert.match(
      removed.stdout,
      new RegExp(`^Member +${id} removed from cluster +[0-9a-f]+$`, "m"),
    );
  assert.deepEqual(await member.exited, { code: 0, signal: null });
  assert.match(member.log(), /the member has been permanently removed from the cluster/);
  const before = member.log().length;
  member.start();
  assert.notEqual((await member.exited).code, null);
  // Its data say so, or the others do, which may have stopped sending before it applied that.
  assert.match(
    member.log().slice(before),
    /permanently removed from the cluster(; its data in .* cannot be used again: move it away and add a new member|",)/,
  );
}

test("an operator's day under load: grow to five, replace a dead member, move the leader, shrink to three", async (t) => {
  await withCluster({ size: 3 }, async (cluster) => {
    const writers = new Writers(cluster, connections, 16, pauseMs);
    const pauses = new MachinePauses(cluster.dir);
    const startedAt = performance.now();
    const mark = async (what: string) => {
      await writers.more(writesBetweenSteps);
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      t.diagnostic(
        `${seconds} s: ${what}; ${writers.acknowledged.size} writes, longest gap so far ${writers.longestGapMs.toFixed(0)} ms`,
      );
    };
    try {
      await mark("three members");
      await grow(cluster, "m3");
      await mark("four members");
      await grow(cluster, "m4");
      await mark("five members");

      const leader = await leaderOf(cluster);
      const dead = cluster.members.find((member) => member !== leader)!;
      await dead.kill();
      await mark(`${dead.name} is dead`);
      await replace(cluster, dead, "m5");
      await mark(`m5 is in its place`);

      const from = await leaderOf(cluster);
      const to = cluster.members.find((member) => member !== from)!;
      const moved = await ctl(cluster, "move-leader", await idOf(cluster, to));
      assert.match(
        moved.stdout,
        new RegExp(
          `^Leadership transferred from ${await idOf(cluster, from)} to ${await idOf(cluster, to)}$`,
          "m",
        ),
      );
      await mark("the leader has moved");

      await shrink(cluster, await leaderOf(cluster));
      await mark("four members, without the last leader");
      const next = await leaderOf(cluster);
      await shrink(cluster, cluster.members.find((member) => member !== next)!);
      await mark("three members");

      const listed = await ctl(cluster, "member", "list");
      assert.deepEqual(
        listed.stdout
          .trimEnd()
          .split("\n")
          .map((line) => line.split(", ")[2])
          .sort(),
        cluster.members.map((member) => member.name).sort(),
      );
    } finally {
      await writers.stop();
      await pauses.stop();
    }
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
    const gap = `no write was acknowledged for ${writers.longestGapMs} ms, and the machine paused for ${pauses.longestMs} ms`;
    t.diagnostic(gap);
    assert.ok(writers.longestGapMs < gapLimitMs + pauses.longestMs, gap);
  });
});

test("the same over mutual TLS: a learner that becomes a voter, and a dead member that is replaced", async () => {
  await withCluster({ size: 3, tls: true }, async (cluster) => {
    const writers = new Writers(cluster, 4, 16, pauseMs);
    try {
      await writers.more(20);
      await grow(cluster, "m3");
      await writers.more(20);
      const leader = await leaderOf(cluster);
      const dead = cluster.members.find((member) => member !== leader)!;
      await dead.kill();
      await replace(cluster, dead, "m4");
      await writers.more(20);
    } finally {
      await writers.stop();
    }
    assert.ok(cluster.members.every(({ options }) => options.peerUrl.startsWith("https://")));
    await assertNothingLost(cluster, writerPrefix, writers.acknowledged);
  });
});
