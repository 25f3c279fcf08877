/** Handing leadership over: to whom, and for how long a successor is waited for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { Leadership, type LeadershipParts } from "../src/membership/leadership.ts";

const ELECTION_MS = 1000;

interface Peer {
  readonly id: bigint;
  readonly match: number;
  readonly recentActive: boolean;
  readonly isLearner: boolean;
}

/** @param learners members that are no voters, and those that are none at all */
function parts(progress: readonly Peer[], learners: Readonly<Record<string, boolean>> = {}) {
  const clock = new ManualClock();
  const leader = {
    leader: 1n,
    get isLeader() {
      return this.leader === 1n;
    },
  };
  const lifetime = { hasEnded: false };
  const state = { progress, asked: [] as bigint[], isDone: false, result: "accepted", wakes: 0 };
  const leadership = new Leadership({
    memberId: 1n,
    electionTimeoutMs: ELECTION_MS,
    clock,
    logger: silentLogger,
    leader,
    lifetime,
    store: {
      current: {
        membership: {
          member: (id: bigint) =>
            `${id}` in learners ? { isLearner: learners[`${id}`] } : undefined,
        },
      },
    },
    turns: { wake: () => state.wakes++ },
    raft: {
      status: () => ({ progress: state.progress }),
      transferLeadership: (to: bigint) => {
        state.asked.push(to);
        return state.result;
      },
    },
  } as unknown as LeadershipParts);
  return { clock, leader, lifetime, state, leadership };
}

/** A leader that hands over. */
function leading(progress: readonly Peer[]) {
  const made = parts(progress);
  void made.leadership.handOver().then(() => (made.state.isDone = true));
  return made;
}

const peer = (id: bigint, match: number, more: Partial<Peer> = {}): Peer => ({
  id,
  match,
  recentActive: true,
  isLearner: false,
  ...more,
});

test("the voter that is furthest, of those that respond, is asked to lead", async () => {
  const { clock, leader, state } = leading([
    peer(1n, 99),
    peer(2n, 5),
    peer(3n, 9),
    peer(4n, 7),
    peer(5n, 12, { recentActive: false }),
    peer(6n, 20, { isLearner: true }),
  ]);
  assert.deepEqual([state.asked, state.wakes], [[3n], 1]);
  leader.leader = 0n;
  await clock.advanceAsync(ELECTION_MS / 2);
  assert.equal(state.isDone, false, "no leader is known");
  leader.leader = 3n;
  await clock.advanceAsync(ELECTION_MS / 2 - 1);
  assert.equal(state.isDone, true);
});

test("a successor that does not lead is waited for an election timeout", async () => {
  const { clock, state } = leading([peer(1n, 99), peer(2n, 5)]);
  await clock.advanceAsync(ELECTION_MS - 1);
  assert.equal(state.isDone, false);
  await clock.advanceAsync(ELECTION_MS / 10);
  assert.equal(state.isDone, true);
});

test("one that responds again soon is asked then; where there is none, nobody is waited for", async () => {
  const silent = peer(2n, 5, { recentActive: false });
  const { clock, state } = leading([peer(1n, 99), silent]);
  await clock.advanceAsync(ELECTION_MS / 5);
  assert.deepEqual([state.asked, state.isDone], [[], false]);
  state.progress = [peer(1n, 99), peer(2n, 5)];
  await clock.advanceAsync(ELECTION_MS / 20);
  assert.deepEqual(state.asked, [2n]);
  const never = leading([peer(1n, 99), silent]);
  await never.clock.advanceAsync(ELECTION_MS / 4 - 1);
  assert.equal(never.state.isDone, false);
  await never.clock.advanceAsync(1);
  assert.deepEqual([never.state.asked, never.state.isDone], [[], true]);
  const alone = leading([peer(1n, 99), peer(6n, 20, { isLearner: true })]);
  await alone.clock.settle();
  assert.deepEqual([alone.state.asked, alone.state.isDone], [[], true]);
});

test("a member that has ended waits for no successor", async () => {
  const silent = leading([peer(1n, 99), peer(2n, 5, { recentActive: false })]);
  silent.lifetime.hasEnded = true;
  await silent.clock.advanceAsync(10);
  assert.equal(silent.state.isDone, true);
  const asked = leading([peer(1n, 99), peer(2n, 5)]);
  asked.lifetime.hasEnded = true;
  await asked.clock.advanceAsync(10);
  assert.equal(asked.state.isDone, true);
});

test("one that does not lead hands nothing over", async () => {
  const { leader, leadership, state } = parts([peer(1n, 99), peer(2n, 5)]);
  leader.leader = 2n;
  await leadership.handOver();
  assert.deepEqual(state.asked, []);
});

const VOTERS = { 1: false, 2: false, 4: true };

test("leadership moves to a voter that is named, or not within its time", async () => {
  const { clock, leader, leadership, state } = parts([], VOTERS);
  const refused = { code: "BadLeaderTransferee" };
  await assert.rejects(leadership.move(3n), refused);
  await assert.rejects(leadership.move(4n), refused);
  await leadership.move(1n);
  assert.deepEqual(state.asked, [], "it leads already");
  const moved = leadership.move(2n);
  leader.leader = 2n;
  await clock.advanceAsync(10);
  await moved;
  assert.deepEqual(state.asked, [2n]);
  await assert.rejects(leadership.move(2n), { code: "NotLeader" });
  leader.leader = 1n;
  const late = assert.rejects(leadership.move(2n), /leader transfer took too long/);
  await clock.advanceAsync(ELECTION_MS + 10);
  await late;
  const other = assert.rejects(leadership.move(2n), /leader transfer took too long/);
  leader.leader = 5n;
  await clock.advanceAsync(10);
  await other;
});

test("a leader that is to leave is replaced: by itself, or by a voter that asks", async () => {
  const { clock, leader, leadership, state } = parts([peer(1n, 9), peer(2n, 5)], VOTERS);
  await leadership.depose(2n);
  assert.deepEqual(state.asked, [], "it does not lead");
  const own = leadership.depose(1n);
  assert.deepEqual(state.asked.splice(0), [2n]);
  leader.leader = 2n;
  await clock.advanceAsync(10);
  await own;
  let isDone = false;
  const asked = leadership.depose(2n).then(() => (isDone = true));
  assert.deepEqual(state.asked.splice(0), [1n]);
  await clock.advanceAsync(ELECTION_MS / 2);
  assert.equal(isDone, false);
  leader.leader = 1n;
  await clock.advanceAsync(10);
  await asked;
  leader.leader = 2n;
  state.result = "dropped";
  await leadership.depose(2n);
  assert.deepEqual(state.asked, [1n], "it is not waited for");
  for (const learners of [{ 1: true }, {}]) {
    const other = parts([], learners);
    other.leader.leader = 2n;
    await other.leadership.depose(2n);
    assert.deepEqual(other.state.asked, []);
  }
});
