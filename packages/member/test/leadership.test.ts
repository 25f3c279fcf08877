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

function leading(progress: readonly Peer[]) {
  const clock = new ManualClock();
  const leader = {
    leader: 1n,
    get isLeader() {
      return this.leader === 1n;
    },
  };
  const state = { progress, asked: [] as bigint[], isDone: false };
  const leadership = new Leadership({
    memberId: 1n,
    electionTimeoutMs: ELECTION_MS,
    clock,
    logger: silentLogger,
    leader,
    lifetime: { hasEnded: false },
    turns: { wake: () => {} },
    raft: {
      status: () => ({ progress: state.progress }),
      transferLeadership: (to: bigint) => {
        state.asked.push(to);
        return "accepted";
      },
    },
  } as unknown as LeadershipParts);
  void leadership.handOver().then(() => (state.isDone = true));
  return { clock, leader, state };
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
  assert.deepEqual(state.asked, [3n]);
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
  await never.clock.advanceAsync(ELECTION_MS / 2);
  assert.deepEqual([never.state.asked, never.state.isDone], [[], true]);
  const alone = leading([peer(1n, 99), peer(6n, 20, { isLearner: true })]);
  await alone.clock.settle();
  assert.deepEqual([alone.state.asked, alone.state.isDone], [[], true]);
});
