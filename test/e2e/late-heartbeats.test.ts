/**
 * `leader failed to send out heartbeat on time` (etcd: server/etcdserver/raft.go): about heartbeats
 * that left late, for each follower; a member without followers has none to send.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startCluster } from "../support/cluster.ts";
import type { TestMember } from "../support/member.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";

const LATE = /leader failed to send out heartbeat on time/g;
/** No election comes of a pause. */
const flags = ["--heartbeat-interval=100", "--election-timeout=10000"];

const warnings = (member: TestMember): number => [...member.log().matchAll(LATE)].length;

async function pause(member: TestMember): Promise<void> {
  member.signal("SIGSTOP");
  await delay(700);
  member.signal("SIGCONT");
}

test("a member alone does not warn of heartbeats, however late its ticks are", async (t) => {
  const cluster = await startCluster({ size: 1, flags });
  t.after(() => cluster.destroy());
  const [member] = cluster.members;
  for (let i = 0; i < 3; i++) {
    await pause(member);
    // It has ticked since: it writes.
    const put = await runQuoratectl(cluster.endpoints, ["put", "a", String(i)]);
    assert.equal(put.code, 0, put.stderr);
    await delay(300);
  }
  assert.equal(warnings(member), 0);
});

test("a leader warns once for each follower after a pause; followers do not", async (t) => {
  const cluster = await startCluster({ size: 3, flags });
  t.after(() => cluster.destroy());
  const leader = cluster.members.find((member) => /became leader/.test(member.log()))!;
  const before = cluster.members.map(warnings);
  await pause(leader);
  const at = cluster.members.indexOf(leader);
  await until("it warns of both", () => warnings(leader) >= before[at] + 2);
  const followers = new Set(
    [...leader.log().matchAll(/heartbeat on time[^\n]*?"to":"([0-9a-f]+)"/g)].map(([, to]) => to),
  );
  assert.equal(followers.size, 2);
  for (const [i, member] of cluster.members.entries())
    if (i !== at) assert.equal(warnings(member), before[i]);
});
