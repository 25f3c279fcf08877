/**
 * The membership through etcdctl and quoratectl: the same commands on a cluster of ours and on one
 * of etcd itself print the same, but for ids and addresses.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { leaderOf, statusOf } from "../support/checks.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { etcdctlFor } from "../support/etcdctl.ts";
import {
  type Executable,
  etcd,
  quorate,
  skipWithoutEtcd,
  skipWithoutEtcdctl,
} from "../support/executables.ts";
import { runQuoratectl } from "../support/quoratectl.ts";

interface Output {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Tool = (
  cluster: TestCluster,
  endpoints: readonly string[],
  args: readonly string[],
) => Promise<Output>;

const byEtcdctl: Tool = (cluster, endpoints, args) => etcdctlFor(cluster, endpoints)(args);
const byQuoratectl: Tool = (_cluster, endpoints, args) =>
  runQuoratectl(endpoints, ["--command-timeout=10s", ...args]);

/** A cluster whose links are younger than five seconds takes no new members. */
const healthyLimitMs = 30_000;
const urls = ["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"] as const;

/**
 * What the commands print, with ids and addresses replaced by what they stand for. Left out is what
 * etcd 3.4 does otherwise than 3.7: an update makes a learner a voter in its list, a promotion of a
 * member that is gone times out, and any member that is down stands in the way of a new one.
 */
async function story(cluster: TestCluster, tool: Tool): Promise<string[]> {
  const names = new Map<string, string>();
  const reported: string[] = [];
  for (const member of cluster.members) {
    const { header } = await statusOf(cluster, member);
    names.set(header!.memberId.toString(16), `<id of ${member.name}>`);
    names.set(header!.clusterId.toString(16), "<cluster>");
    names.set(member.clientUrl, `<client of ${member.name}>`);
    names.set(member.options.peerUrl, `<peer of ${member.name}>`);
  }
  const plain = (text: string): string => {
    // Ids are filled up to 16 places; only later releases print that one was added as a learner.
    let result = text
      .replace(/(?<=^Member| cluster) +/gm, " ")
      .replaceAll("added as learner to", "added to");
    for (const [from, to] of names) result = result.replaceAll(from, to);
    return result;
  };
  const report = (args: readonly string[], { code, stdout, stderr }: Output): void => {
    const errors = stderr.split("\n").filter((line) => line.startsWith("Error: "));
    // Members come in the order of their ids, which are others in every cluster.
    const lines = plain(stdout)
      .replace(/(?<=^ETCD_INITIAL_CLUSTER=")[^"]*/m, (list) => list.split(",").sort().join(","))
      .split("\n");
    reported.push(
      `$ ${plain(args.join(" "))}\n${(args[1] === "list" ? lines.sort() : lines).join("\n")}\n${plain(errors.join("\n"))}\n= ${code}`,
    );
  };
  const run = async (
    args: readonly string[],
    endpoints: readonly string[] = cluster.endpoints,
  ): Promise<Output> => {
    const endMs = performance.now() + healthyLimitMs;
    for (;;) {
      const output = await tool(cluster, endpoints, args);
      if (output.stderr.includes("unhealthy cluster") && performance.now() < endMs) {
        await delay(300);
        continue;
      }
      const id = /^Member +([0-9a-f]+) added/m.exec(output.stdout)?.[1];
      if (id !== undefined) names.set(id, "<id of the new one>");
      report(args, output);
      return output;
    }
  };
  const added = await run(["member", "add", "late", "--learner", `--peer-urls=${urls[0]}`]);
  const id = /^Member +([0-9a-f]+) added/m.exec(added.stdout)![1];
  await run(["member", "add", "later", "--learner", `--peer-urls=${urls[1]}`]);
  await run(["member", "add", "again", `--peer-urls=${cluster.members[1].options.peerUrl}`]);
  await run(["member", "list"]);
  await run(["member", "promote", id]);
  await run(["member", "update", id, `--peer-urls=${cluster.members[0].options.peerUrl}`]);
  await run(["member", "list"]);
  await run(["member", "remove", id]);
  await run(["member", "remove", id]);
  await run(["member", "update", id, `--peer-urls=${urls[0]}`]);
  await run(["member", "list"]);
  const voter = await run(["member", "add", "voter", `--peer-urls=${urls[1]}`]);
  await run([
    "member",
    "update",
    /^Member +([0-9a-f]+) added/m.exec(voter.stdout)![1],
    `--peer-urls=${urls[2]},${urls[0]}`,
  ]);
  await run(["member", "list"]);
  await run(["member", "remove", /^Member +([0-9a-f]+) added/m.exec(voter.stdout)![1]]);

  const leader = await leaderOf(cluster);
  const [to, other] = cluster.members.filter((member) => member !== leader);
  const idOf = async (member: typeof leader) =>
    (await statusOf(cluster, member)).header!.memberId.toString(16);
  // Who leads is another one in every cluster.
  names.set(await idOf(leader), "<id of the leader>");
  names.set(await idOf(to), "<id of the next leader>");
  await run(["move-leader", "abc"]);
  const single = await tool(cluster, [other.clientUrl], ["move-leader", await idOf(to)]);
  assert.match(single.stderr, /Error: no leader endpoint given at \[\S+\]/);
  assert.equal(single.code, 128);
  await run(["move-leader", await idOf(to)]);
  assert.equal(await leaderOf(cluster), to);
  return reported;
}

test("member and move-leader print the same on a cluster of ours and on one of etcd", {
  skip: skipWithoutEtcd || skipWithoutEtcdctl,
}, async () => {
  const on = (executable: Executable, tool: Tool) =>
    withCluster({ executable }, (cluster) => story(cluster, tool));
  const expected = await on(etcd!, byEtcdctl);
  assert.deepEqual(await on(quorate, byEtcdctl), expected);
  assert.deepEqual(await on(quorate, byQuoratectl), expected);
});
