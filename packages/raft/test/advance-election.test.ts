/** The first election after a start may come sooner; nothing else changes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { raftpb } from "@quorate/proto";
import { Raft, type RaftConfig } from "../index.ts";
import { newCluster, pump, testConfig } from "./helpers.ts";

function follower(changes: Partial<RaftConfig> = {}): Raft {
  const raft = new Raft(testConfig(1n, changes), newCluster(3));
  pump(raft);
  return raft;
}

/** Ticks until the machine campaigns. */
function ticksToCampaign(raft: Raft): number {
  for (let ticks = 1; ticks <= 40; ticks++) {
    raft.tick();
    if (raft.role !== "follower") return ticks;
  }
  return Number.POSITIVE_INFINITY;
}

test("a follower that knows no leader campaigns sooner", () => {
  assert.equal(ticksToCampaign(follower()), 10);
  const raft = follower();
  raft.advanceElection(8);
  assert.equal(ticksToCampaign(raft), 2);
});

test("a follower that has heard a leader waits as before", () => {
  const raft = follower();
  const heartbeat = { type: raftpb.MessageType.MsgHeartbeat, from: 2n, to: 1n, term: 1 };
  raft.step(raftpb.Message.create(heartbeat));
  raft.advanceElection(8);
  assert.equal(ticksToCampaign(raft), 10);
});

test("with reads by lease a vote still waits for a whole election timeout of the clock", () => {
  const raft = follower({ readOnly: "lease", checkQuorum: true });
  raft.advanceElection(8);
  const vote = raftpb.Message.create({
    type: raftpb.MessageType.MsgVote,
    from: 2n,
    to: 1n,
    term: 2,
    logTerm: 1,
    index: 3,
  });
  raft.step(vote);
  assert.equal(raft.term, 1);
});
