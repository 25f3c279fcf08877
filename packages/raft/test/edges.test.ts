/** Single steps that only the random clusters met, each at its edge. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, fromLatin1, raftpb } from "@quorate/proto";
import { MAX_TERM, MAX_TERM_LEAP, Raft } from "../index.ts";
import { decodeRound, encodeRound } from "../src/reads.ts";
import { Progress } from "../src/tracker.ts";
import { newCluster, newLeader, pump, testConfig } from "./helpers.ts";

const { MsgApp, MsgAppResp, MsgHeartbeat, MsgProp, MsgReadIndex, MsgVote, MsgVoteResp } =
  raftpb.MessageType;
const { EntryConfChange, EntryConfChangeV2, EntryNormal } = raftpb.EntryType;

const message = (type: raftpb.MessageType, fields: Partial<raftpb.Message> = {}) =>
  raftpb.Message.create({ type, from: 2n, to: 1n, term: 2, ...fields });
const entry = (
  index: number,
  term: number,
  type: raftpb.EntryType = EntryNormal,
  data: Uint8Array = EMPTY,
) => ({
  type,
  term,
  index,
  data,
});
const removal = (nodeId: bigint) =>
  raftpb.ConfChange.create({ type: raftpb.ConfChangeType.ConfChangeRemoveNode, nodeId });

/** Member 1 of three, which has entry 4 of term 2 and has campaigned for term 3. */
function candidate(last: raftpb.Entry = entry(4, 2)): Raft {
  const raft = new Raft(testConfig(1n), newCluster(3));
  pump(raft);
  raft.step(message(MsgApp, { index: 3, logTerm: 1, entries: [last], commit: 3 }));
  pump(raft);
  raft.campaign();
  pump(raft);
  assert.deepEqual([raft.role, raft.term, raft.commitIndex], ["candidate", 3, 3]);
  return raft;
}

test("a forwarded read has one context; of any other number none is confirmed", () => {
  const raft = newLeader(3);
  const read = (count: number) => {
    const entries = Array.from({ length: count }, (_, i) =>
      entry(0, 0, EntryNormal, encodeRound(1, i)),
    );
    raft.step(message(MsgReadIndex, { term: 0, entries }));
    return pump(raft).filter(({ context }) => context.length > 0).length;
  };
  pump(raft);
  raft.step(message(MsgAppResp, { index: raft.lastIndex }));
  pump(raft);
  assert.equal(read(2), 0);
  assert.equal(read(0), 0);
  assert.equal(read(1), 2);
});

test("an acknowledgement makes room in the window of a follower that keeps up", () => {
  const raft = newLeader(3, { maxInflightMessages: 1 });
  const sentTo2 = () =>
    pump(raft).flatMap(({ to, type, entries }) =>
      to === 2n && type === MsgApp ? entries.map(({ index }) => index) : [],
    );
  const acknowledged = () => {
    raft.step(message(MsgAppResp, { index: raft.lastIndex - 1 }));
    return sentTo2();
  };
  raft.step(message(MsgAppResp, { index: raft.lastIndex }));
  pump(raft);
  raft.propose([fromLatin1("a")]);
  assert.equal(sentTo2().length, 1);
  for (const text of ["b", "c"]) {
    raft.propose([fromLatin1(text)]);
    assert.deepEqual(sentTo2(), [], "one message is on its way");
    assert.deepEqual(acknowledged(), [raft.lastIndex]);
  }
});

test("a refused change within a batch leaves an empty entry in its place", () => {
  const raft = newLeader(3);
  const first = raft.lastIndex + 1;
  const data = raftpb.ConfChange.encode(removal(3n));
  const change = entry(0, 0, EntryConfChange, data);
  const none = entry(0, 0);
  raft.step(message(MsgProp, { term: 0, entries: [none, none, none, change, change, none] }));
  assert.deepEqual(
    raft.ready().entries.map(({ index, type }) => [index - first, type]),
    [EntryNormal, EntryNormal, EntryNormal, EntryConfChange, EntryNormal, EntryNormal].map(
      (type, i) => [i, type],
    ),
  );
});

test("a smaller quorum commits at once what it has", () => {
  const raft = newLeader(2);
  raft.step(message(MsgAppResp, { index: raft.lastIndex }));
  pump(raft);
  raft.proposeConfChange(removal(2n));
  const changeIndex = raft.lastIndex;
  raft.propose([fromLatin1("x")]);
  pump(raft);
  assert.ok(raft.commitIndex < changeIndex);
  raft.step(message(MsgAppResp, { index: changeIndex }));
  pump(raft);
  assert.equal(raft.commitIndex, raft.lastIndex);
  assert.equal(raft.lastIndex, changeIndex + 1);
});

test("entries that are handed out and not applied count against the next Ready", () => {
  const raft = newLeader(1, { maxCommittedBytesPerReady: 100 });
  const taken = () => {
    if (!raft.hasReady()) return 0;
    const ready = raft.ready();
    raft.persisted(ready.number);
    return ready.committed.length;
  };
  const payloads = (count: number) => Array.from({ length: count }, () => new Uint8Array(8));
  raft.propose(payloads(1));
  assert.deepEqual([taken(), taken()], [0, 1]);
  // Of 40 bytes each: one more fits into 100, a third one does not.
  raft.propose(payloads(3));
  assert.deepEqual([taken(), taken(), taken()], [0, 1, 0]);
  raft.applied(raft.lastIndex - 2);
  assert.equal(taken(), 2);
});

test("a new term is a new draw of the election timeout", () => {
  let drawn = 0;
  const raft = new Raft(testConfig(1n, { randomBelow: () => drawn++ % 10 }), newCluster(3));
  pump(raft);
  const before = drawn;
  raft.step(message(MsgHeartbeat, { term: 5 }));
  assert.equal(drawn, before + 1);
});

test("a candidate learns from a refused vote what is committed, and goes on", () => {
  const raft = candidate();
  raft.step(message(MsgVoteResp, { term: 3, reject: true, commit: 4, logTerm: 2 }));
  assert.deepEqual([raft.role, raft.commitIndex], ["candidate", 4]);
});

test("so does a candidate before its vote", () => {
  const raft = new Raft(testConfig(1n, { preVote: true }), newCluster(3));
  pump(raft);
  raft.step(message(MsgApp, { index: 3, logTerm: 1, entries: [entry(4, 2)], commit: 3 }));
  pump(raft);
  raft.campaign();
  pump(raft);
  const refusal = { term: 2, reject: true, commit: 4, logTerm: 2 };
  raft.step(message(raftpb.MessageType.MsgPreVoteResp, refusal));
  assert.deepEqual([raft.role, raft.commitIndex], ["pre-candidate", 4]);
});

test("a stale acknowledgement does not end a probe", () => {
  const raft = newLeader(3);
  const stateOf2 = () => raft.status().progress.find(({ id }) => id === 2n)!.state;
  raft.step(message(MsgAppResp, { index: raft.lastIndex }));
  pump(raft);
  assert.equal(stateOf2(), "replicate");
  raft.reportUnreachable(2n);
  assert.equal(stateOf2(), "probe");
  raft.step(message(MsgAppResp, { index: raft.lastIndex - 1 }));
  assert.equal(stateOf2(), "probe");
  raft.step(message(MsgAppResp, { index: raft.lastIndex }));
  assert.equal(stateOf2(), "replicate");
});

test("a candidate that learns so of a change of the configuration applies it first", () => {
  const raft = candidate(entry(4, 2, EntryConfChangeV2));
  raft.step(message(MsgVoteResp, { term: 3, reject: true, commit: 4, logTerm: 2 }));
  assert.deepEqual([raft.role, raft.term, raft.commitIndex], ["follower", 3, 4]);
});

test("a candidate that hears the leader of its term follows it", () => {
  const raft = candidate();
  raft.step(message(MsgHeartbeat, { term: 3 }));
  assert.deepEqual([raft.role, raft.leader, raft.term], ["follower", 2n, 3]);
});

test("terms are taken up to the edges of what is possible", () => {
  const raft = new Raft(testConfig(1n), newCluster(3));
  pump(raft);
  const leap = raft.term + MAX_TERM_LEAP;
  assert.equal(raft.step(message(MsgVote, { term: leap })), undefined);
  assert.equal(raft.term, leap);
  const late = new Raft(testConfig(1n), {
    ...newCluster(3),
    hardState: { term: MAX_TERM - 1, vote: 0n, commit: 3 },
  });
  pump(late);
  assert.equal(late.step(message(MsgVote, { term: MAX_TERM })), undefined);
  assert.equal(late.term, MAX_TERM);
});

test("an append whose own terms fall is refused", () => {
  const raft = new Raft(testConfig(1n), newCluster(3));
  pump(raft);
  const entries = [entry(4, 2), entry(5, 1)];
  const refusal = raft.step(message(MsgApp, { index: 3, logTerm: 1, entries }));
  assert.match(refusal ?? "taken", /entry 5 of term 1 follows 4 of term 2/);
});

test("a rejection, or an answer of another term, may name any index", () => {
  const raft = newLeader(3);
  const index = raft.lastIndex + 50;
  assert.equal(raft.step(message(MsgAppResp, { index, reject: true })), undefined);
  assert.equal(raft.step(message(MsgAppResp, { index, term: 1 })), undefined);
  assert.match(raft.step(message(MsgAppResp, { index })) ?? "taken", /acknowledges entry/);
});

test("a context of a round is of 16 bytes with two safe numbers", () => {
  const good = encodeRound(3, 4);
  assert.deepEqual(decodeRound(good), { round: 3, tick: 4 });
  assert.equal(decodeRound(good.subarray(1)), undefined);
  for (const at of [0, 8]) assert.equal(decodeRound(good.with(at, 1)), undefined);
});

test("an append from before the commit is answered with the commit", () => {
  const raft = new Raft(testConfig(1n), newCluster(3));
  pump(raft);
  raft.step(message(MsgApp, { index: 1, logTerm: 1 }));
  assert.deepEqual(
    pump(raft).map(({ type, to, index, reject }) => ({ type, to, index, reject })),
    [{ type: MsgAppResp, to: 2n, index: 3, reject: false }],
  );
});

test("an acknowledgement of what is known already is no news", () => {
  const progress = new Progress(2n, 5, false, { maxInflightMessages: 4, maxInflightBytes: 1000 });
  assert.equal(progress.acknowledge(6, 10), true);
  assert.equal(progress.acknowledge(6, 10), false);
});
