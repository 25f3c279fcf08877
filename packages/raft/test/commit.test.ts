/**
 * What may be committed or decided, where random schedules need thousands of seeds to show that it
 * was done too early.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, raftpb } from "@quorate/proto";
import { Raft } from "../index.ts";
import { RaftLog } from "../src/log.ts";
import { newCluster, newLeader, pump, testConfig } from "./helpers.ts";

const entry = (index: number, term: number): raftpb.Entry => ({
  type: raftpb.EntryType.EntryNormal,
  term,
  index,
  data: EMPTY,
});

test("an append commits no further than its own entries reach, however long the log is", () => {
  const entries = [entry(1, 1), entry(2, 1), entry(3, 1), entry(4, 1)];
  const hardState = { term: 1, vote: 0n, commit: 0 };
  const log = new RaftLog(
    { hardState, snapshot: raftpb.SnapshotMetadata.create(), entries, applied: 0 },
    1 << 20,
  );
  assert.equal(log.tryAppend(1, 1, [entry(2, 1)], 4), 2);
  assert.equal(log.committed, 2);
  assert.equal(log.tryAppend(3, 1, [], 4), 3);
  assert.equal(log.committed, 3);
});

test("a leader does not commit entries of older terms by counting copies (Raft, figure 8)", () => {
  const initial = newCluster(3);
  const hardState = { term: 2, vote: 0n, commit: 3 };
  const raft = new Raft(testConfig(1n), {
    ...initial,
    hardState,
    entries: [...initial.entries, entry(4, 2)],
  });
  pump(raft);
  raft.campaign();
  pump(raft);
  raft.step(
    raftpb.Message.create({ type: raftpb.MessageType.MsgVoteResp, from: 2n, to: 1n, term: 3 }),
  );
  pump(raft);
  assert.equal(raft.role, "leader");
  const acknowledge = (index: number) => {
    raft.step(
      raftpb.Message.create({
        type: raftpb.MessageType.MsgAppResp,
        from: 2n,
        to: 1n,
        term: 3,
        index,
      }),
    );
    pump(raft);
    return raft.status().commit;
  };
  assert.equal(acknowledge(4), 3);
  assert.equal(acknowledge(5), 5);
});

test("an acknowledgement of an older term does not count", () => {
  const raft = newLeader(3);
  raft.propose([new Uint8Array([1])]);
  pump(raft);
  const { commit, term } = raft.status();
  const index = raft.lastIndex;
  assert.ok(commit < index);
  const acknowledge = (ofTerm: number) => {
    raft.step(
      raftpb.Message.create({
        type: raftpb.MessageType.MsgAppResp,
        from: 2n,
        to: 1n,
        term: ofTerm,
        index,
      }),
    );
    pump(raft);
    return raft.status().commit;
  };
  assert.equal(acknowledge(term - 1), commit);
  assert.equal(acknowledge(term), index);
});

test("the own vote counts when its own write is durable, not an earlier one", () => {
  const raft = new Raft(testConfig(1n), newCluster(3));
  pump(raft);
  const heartbeat = {
    type: raftpb.MessageType.MsgApp,
    from: 3n,
    to: 1n,
    term: 2,
    index: 3,
    logTerm: 1,
    commit: 3,
  };
  raft.step(raftpb.Message.create({ ...heartbeat, entries: [entry(4, 2)] }));
  const earlier = raft.ready();
  raft.campaign();
  const own = raft.ready();
  raft.step(
    raftpb.Message.create({ type: raftpb.MessageType.MsgVoteResp, from: 2n, to: 1n, term: 3 }),
  );
  raft.persisted(earlier.number);
  assert.equal(raft.role, "candidate");
  raft.persisted(own.number);
  assert.equal(raft.role, "leader");
});
