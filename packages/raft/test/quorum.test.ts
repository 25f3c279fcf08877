/** Majorities against models that count. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import { Campaign } from "../src/machine.ts";
import { Replica } from "../src/replica.ts";
import {
  jointVote,
  majorityValue,
  majorityVote,
  Tracker,
  type VoteResult,
} from "../src/tracker.ts";
import { newCluster, testConfig } from "./helpers.ts";

const WINDOW = { maxInflightMessages: 1, maxInflightBytes: 1 };

/** The highest value such that more than half of the members have reached it. */
function slowMajorityValue(values: readonly number[]): number {
  if (values.length === 0) return Number.POSITIVE_INFINITY;
  let best = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    const reached = values.filter((other) => other >= value).length;
    if (reached > values.length / 2 && value > best) best = value;
  }
  return best;
}

/** Won or lost if that is so however the missing votes turn out. */
function slowVote(
  halves: readonly (readonly bigint[])[],
  votes: ReadonlyMap<bigint, boolean>,
): VoteResult {
  const missing = [...new Set(halves.flat())].filter((id) => !votes.has(id));
  const outcomes = new Set<boolean>();
  for (let bits = 0; bits < 1 << missing.length; bits++) {
    const all = new Map(votes);
    for (const [i, id] of missing.entries()) all.set(id, ((bits >> i) & 1) === 1);
    outcomes.add(
      halves.every(
        (half) => half.length === 0 || half.filter((id) => all.get(id)).length > half.length / 2,
      ),
    );
  }
  if (outcomes.size === 2) return "pending";
  return outcomes.has(true) ? "won" : "lost";
}

function someIds(random: SeededRandom, most: number): bigint[] {
  const count = random.below(most + 1);
  const ids = new Set<bigint>();
  while (ids.size < count) ids.add(BigInt(1 + random.below(most + 2)));
  return [...ids].sort((a, b) => Number(a - b));
}

test("the value of a majority is the slow model's", () => {
  const random = new SeededRandom(1n);
  for (let run = 0; run < 20_000; run++) {
    const values = Array.from({ length: random.below(10) }, () => random.below(6));
    const expected = slowMajorityValue(values);
    assert.equal(majorityValue([...values]), expected, `${values}`);
  }
});

test("the vote of one and of two majorities is the slow model's", () => {
  const random = new SeededRandom(2n);
  for (let run = 0; run < 10_000; run++) {
    const incoming = someIds(random, 5);
    const outgoing = random.below(2) === 0 ? [] : someIds(random, 5);
    const votes = new Map<bigint, boolean>();
    for (const id of [...incoming, ...outgoing])
      if (random.below(3) > 0) votes.set(id, random.below(2) === 0);
    assert.equal(majorityVote(incoming, votes), slowVote([incoming], votes));
    const joint = jointVote(incoming, outgoing, votes);
    const slow = slowVote([incoming, outgoing], votes);
    // Both halves may still be open while together they cannot be won any more: the fast one then
    // waits for more votes than it needs.
    if (joint === "pending" && slow === "lost") {
      assert.equal(
        majorityVote(incoming, votes) === "lost" || majorityVote(outgoing, votes) === "lost",
        false,
      );
    } else {
      assert.equal(
        joint,
        slow,
        `${incoming} ${outgoing} ${JSON.stringify([...votes].map(String))}`,
      );
    }
  }
});

test("a joint configuration has reached what each of its halves has", () => {
  const random = new SeededRandom(3n);
  for (let run = 0; run < 5000; run++) {
    const voters = someIds(random, 6);
    const votersOutgoing = someIds(random, 6);
    if (voters.length === 0) continue;
    const tracker = new Tracker(
      { voters, votersOutgoing, learners: [99n], learnersNext: [], autoLeave: false },
      10,
      WINDOW,
    );
    for (const progress of tracker.all) {
      progress.match = random.below(10);
      progress.ackedRound = random.below(10);
      progress.ackedTick = random.below(10) - 1;
    }
    const reached = (field: "match" | "ackedRound" | "ackedTick"): number =>
      Math.min(
        ...[voters, votersOutgoing].map((half) =>
          slowMajorityValue(half.map((id) => tracker.get(id)![field])),
        ),
      );
    assert.equal(tracker.quorumMatch(), reached("match"));
    assert.equal(tracker.quorumRound(), reached("ackedRound"));
    assert.equal(tracker.quorumTick(), reached("ackedTick"));
  }
});

const THREE_VOTERS: raftpb.ConfState = {
  voters: [1n, 2n, 3n],
  votersOutgoing: [],
  learners: [4n],
  learnersNext: [],
  autoLeave: false,
};

test("the first vote of a voter counts, and a campaign begins without votes", () => {
  const replica = new Replica(testConfig(1n), { ...newCluster(3), confState: THREE_VOTERS });
  const campaign = new Campaign(replica, "candidate");
  campaign.count(2n, false);
  campaign.count(2n, true);
  campaign.count(4n, true);
  assert.equal(campaign.count(1n, true), "pending");
  assert.equal(campaign.count(3n, true), "won");
  assert.equal(new Campaign(replica, "candidate").count(1n, true), "pending");
});

test("a check for a quorum forgets who was active", () => {
  const tracker = new Tracker(THREE_VOTERS, 1, WINDOW);
  assert.equal(tracker.takeQuorumActive(1n), false, "a new leader has heard nobody");
  tracker.configure({ ...THREE_VOTERS, voters: [1n, 2n, 3n, 5n, 6n] }, 1);
  tracker.get(2n)!.recentActive = true;
  assert.equal(tracker.takeQuorumActive(1n), true, "new members count as active");
  tracker.configure(THREE_VOTERS, 1);
  tracker.get(4n)!.recentActive = true;
  assert.equal(tracker.takeQuorumActive(1n), false, "a learner does not help");
  tracker.get(3n)!.recentActive = true;
  assert.equal(tracker.takeQuorumActive(1n), true);
  assert.equal(tracker.takeQuorumActive(1n), false);
});
