/**
 * What the background jobs of a member rest on changes while they wait: leadership, the end of the
 * member, a snapshot. packages/sim/src/planted/catalogue/rechecks.ts lists all such places with
 * their tests.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { errorOf, fromUtf8 } from "@quorate/proto";
import type { PeerAnswer } from "@quorate/transport";
import { type LoopTurns, Standstill } from "../src/loop/turns.ts";
import { Reconfiguration, type ReconfigurationParts } from "../src/membership/reconfiguration.ts";
import { VersionMonitor, type VersionMonitorParts } from "../src/membership/version-monitor.ts";
import { Publication, type PublicationParts } from "../src/publication.ts";

const member = (id: bigint) => ({
  id,
  name: `m${id}`,
  peerUrls: [`http://m${id}`],
  clientUrls: [],
  isLearner: false,
});

/** A monitor of two members whose calls and proposals wait until the test ends them. */
function monitor() {
  const clock = new ManualClock();
  const calls: ((answer: PeerAnswer) => void)[] = [];
  const proposed: (() => void)[] = [];
  const version = fromUtf8(JSON.stringify({ etcdserver: "3.7.0", etcdcluster: "3.7.0" }));
  const parts = {
    memberId: 1n,
    clock,
    logger: silentLogger,
    call: () => new Promise<PeerAnswer>((resolve) => calls.push(resolve)),
    store: {
      current: {
        membership: { clusterVersion: undefined, members: () => [member(1n), member(2n)] },
      },
    },
    leader: { isLeader: true },
    lifetime: { hasEnded: false },
    proposals: { propose: () => new Promise<void>((resolve) => proposed.push(resolve)) },
  } as unknown as VersionMonitorParts;
  const answerAll = async () => {
    for (const answer of calls.splice(0)) answer({ status: 200, body: version });
    await turn();
  };
  return { clock, calls, proposed, answerAll, versions: new VersionMonitor(parts) };
}

test("a round of versions of an earlier leadership proposes nothing", async () => {
  const { calls, proposed, answerAll, versions } = monitor();
  versions.lead();
  versions.lead();
  assert.equal(calls.length, 2);
  await answerAll();
  assert.equal(proposed.length, 1);
});

test("a round of versions of an earlier leadership is followed by no other", async () => {
  const { clock, calls, proposed, answerAll, versions } = monitor();
  versions.lead();
  await answerAll();
  assert.equal(proposed.length, 1);
  versions.stop();
  for (const end of proposed.splice(0)) end();
  await turn();
  clock.advance(60_000);
  assert.equal(calls.length, 0, "it leads no more");
});

test("who waits to stand still is refused if a snapshot is being installed then", async () => {
  const standstill = new Standstill({ areRunning: true } as LoopTurns);
  standstill.isInEntry = true;
  const running = standstill.run(() => assert.fail("two at a time"));
  standstill.isInEntry = false;
  standstill.isOn = true;
  standstill.entryEnded();
  await assert.rejects(running, /installing a snapshot/);
  assert.equal(standstill.isOn, true);
});

test("a promotion rests on no progress that an earlier leader noted", async () => {
  const raft = { role: "leader" };
  const parts = {
    memberId: 1n,
    metrics: { learnerPromotions: { add() {} }, learnerPromoteFailed: { add() {} } },
    leader: { isLeader: true },
    reads: {
      wait: async () => {
        await turn();
        raft.role = "follower";
      },
    },
    raft: { status: () => ({ ...raft, progress: [] }) },
  } as unknown as ReconfigurationParts;
  const refused = { message: errorOf("NotLeader").message };
  await assert.rejects(new Reconfiguration(parts).promoteAsLeader(2n), refused);
});

test("a member that ended while it published itself is not ready", async () => {
  const lifetime = { hasEnded: false };
  const publication = new Publication({
    clock: new ManualClock(),
    memberId: 1n,
    clusterId: 2n,
    config: { name: "m", advertiseClientUrls: [] },
    metrics: { clusterVersion: { with: () => ({ value: 0 }) } },
    store: { current: { membership: { clusterVersion: "3.7.0" } } },
    logger: silentLogger,
    lifetime,
    proposals: {
      propose: async () => {
        await turn();
        lifetime.hasEnded = true;
        return {};
      },
    },
  } as unknown as PublicationParts);
  let isReady = false;
  void publication.ready.then(() => (isReady = true));
  await publication.publish();
  await turn();
  assert.equal(isReady, false);
});
