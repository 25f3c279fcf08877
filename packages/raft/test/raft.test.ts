/** The machine's public interface, where scenarios do not cover it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, fromLatin1, raftpb } from "@quorate/proto";
import { Raft, RaftConfigError } from "../index.ts";
import { decodeRound, encodeRound, ReadOnly } from "../src/reads.ts";
import { Inflights, Progress } from "../src/tracker.ts";
import { newCluster, newLeader, pump, testConfig } from "./helpers.ts";

test("settings that contradict each other are refused", () => {
  const wrong: Parameters<typeof testConfig>[1][] = [
    { id: 0n },
    { heartbeatTicks: 0 },
    { electionTicks: 1 },
    { electionTicks: Number.NaN },
    { maxMessageBytes: 0 },
    { maxInflightMessages: 0 },
    { maxInflightBytes: 1, maxMessageBytes: 2 },
    { maxUncommittedBytes: 0 },
    { maxCommittedBytesPerReady: 0 },
    { maxPendingReads: 0 },
    { readOnly: "lease", checkQuorum: false },
  ];
  for (const changes of wrong) {
    assert.throws(
      () => new Raft(testConfig(1n, changes), newCluster(1)),
      (error: unknown) => error instanceof RaftConfigError && error.code === "InvalidRaftConfig",
      JSON.stringify(changes, (_, value) => (typeof value === "bigint" ? String(value) : value)),
    );
  }
});

test("election timeouts are spread over electionTicks to twice that", () => {
  const seen = new Set<number>();
  for (let drawn = 0; drawn < 10; drawn++) {
    const raft = new Raft(
      testConfig(1n, {
        randomBelow: (bound) => {
          assert.equal(bound, 10);
          return drawn;
        },
      }),
      newCluster(3),
    );
    pump(raft);
    let ticks = 0;
    while (raft.role === "follower") {
      raft.tick();
      ticks++;
    }
    seen.add(ticks);
  }
  assert.deepEqual([...seen], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
});

test("a Ready that is out does not change any more, and what was given is not given again", () => {
  const raft = newLeader(3);
  const empty = raft.ready();
  raft.propose([fromLatin1("a")]);
  const full = raft.ready();
  raft.tick();
  raft.step(
    raftpb.Message.create({ type: raftpb.MessageType.MsgAppResp, from: 2n, to: 1n, term: 9 }),
  );
  raft.ready();
  assert.equal(
    empty.messages.length +
      empty.messagesAfterSync.length +
      empty.entries.length +
      empty.readStates.length,
    0,
  );
  assert.equal(full.entries.length, 1);
  assert.equal(full.number, empty.number + 1);
  assert.equal(raft.hasReady(), false);
});

test("mustSync is true if anything but the commit index changed", () => {
  const raft = newLeader(2);
  raft.propose([EMPTY]);
  const written = raft.ready();
  assert.equal(written.mustSync, true);
  raft.persisted(written.number);
  raft.step(
    raftpb.Message.create({
      type: raftpb.MessageType.MsgAppResp,
      from: 2n,
      to: 1n,
      term: 2,
      index: raft.lastIndex,
    }),
  );
  const committed = raft.ready();
  assert.equal(committed.hardState?.commit, raft.lastIndex);
  assert.equal(committed.mustSync, false);
  raft.step(
    raftpb.Message.create({
      type: raftpb.MessageType.MsgVote,
      from: 2n,
      to: 1n,
      term: 3,
      index: 9,
      logTerm: 2,
    }),
  );
  const voted = raft.ready();
  assert.deepEqual({ ...voted.hardState, commit: 0 }, { term: 3, vote: 2n, commit: 0 });
  assert.equal(voted.mustSync, true);
});

test("the logger hears of rare events, with ids in hex", () => {
  const lines: string[] = [];
  const raft = newLeader(3, {
    logger: (level, message, fields) => lines.push(`${level} ${message} ${fields["id"]}`),
  });
  raft.step(
    raftpb.Message.create({ type: raftpb.MessageType.MsgAppResp, from: 0xabcn, to: 1n, term: 2 }),
  );
  assert.ok(lines.includes("info became candidate 1"));
  assert.ok(lines.includes("info became leader 1"));
  assert.ok(lines.includes("debug dropped a message 1"));
});

test("proposing nothing changes nothing", () => {
  const raft = newLeader(1);
  const last = raft.lastIndex;
  assert.equal(raft.propose([]), "accepted");
  assert.equal(raft.lastIndex, last);
});

test("a malformed configuration change becomes an empty entry", () => {
  const raft = newLeader(1);
  const entries = [
    { type: raftpb.EntryType.EntryConfChangeV2, term: 0, index: 0, data: new Uint8Array([0xff]) },
  ];
  raft.step(raftpb.Message.create({ type: raftpb.MessageType.MsgProp, from: 9n, to: 1n, entries }));
  const ready = raft.ready();
  assert.deepEqual(
    ready.entries.map(({ type, data }) => [type, data.length]),
    [[0, 0]],
  );
});

test("the same message may come twice: entries of a proposal are not changed", () => {
  const raft = newLeader(1);
  const message = raftpb.Message.create({
    type: raftpb.MessageType.MsgProp,
    from: 9n,
    to: 1n,
    entries: [raftpb.Entry.create()],
  });
  raft.step(message);
  raft.step(message);
  const { entries } = raft.ready();
  assert.deepEqual(
    entries.map((entry) => entry.index),
    [3, 4],
  );
  assert.equal(message.entries[0].index, 0);
});

test("the window keeps order, counts bytes and grows up to its limit", () => {
  const window = new Inflights(10, 1000);
  for (let round = 0; round < 5; round++) {
    for (let i = 1; i <= 10; i++) {
      assert.equal(window.full, false);
      window.add(round * 100 + i, 10);
    }
    assert.equal(window.full, true);
    assert.equal(window.bytes, 100);
    window.freeUpTo(round * 100 + 4);
    assert.equal(window.count, 6);
    window.freeUpTo(round * 100 + 3);
    assert.equal(window.count, 6);
    window.freeUpTo(round * 100 + 50);
    assert.deepEqual([window.count, window.bytes], [0, 0]);
  }
  window.add(1000, 999);
  assert.equal(window.full, false);
  window.add(1001, 1);
  assert.equal(window.full, true);
  window.reset();
  assert.equal(window.full, false);
});

test("progress: rejections of what is known to match are stale", () => {
  const progress = new Progress(2n, 5, false, {
    maxInflightMessages: 4,
    maxInflightBytes: 1000,
  });
  assert.equal(progress.reject(3, 1), false, "not the probe that is out");
  assert.equal(progress.reject(4, 1), true);
  assert.equal(progress.next, 2);
  assert.equal(progress.acknowledge(6, 10), true);
  assert.equal(progress.acknowledge(5, 10), false);
  progress.becomeReplicate();
  progress.sentEntries(3, 30);
  assert.equal(progress.reject(6, 6), false);
  assert.equal(progress.reject(8, 1), true);
  assert.equal(progress.next, 7);
});

test("read rounds: contexts return unchanged, and foreign ones are recognized", () => {
  assert.deepEqual(decodeRound(encodeRound(7, 2 ** 52)), { round: 7, tick: 2 ** 52 });
  assert.equal(decodeRound(EMPTY), undefined);
  assert.equal(decodeRound(new Uint8Array(16).fill(255)), undefined);
  assert.equal(decodeRound(fromLatin1("CampaignTransfer")), undefined);
});

test("read rounds: reads are confirmed in order, by their own round or a later one", () => {
  const reads = new ReadOnly(3);
  const read = (name: string): { from: bigint; context: Uint8Array } => ({
    from: 0n,
    context: fromLatin1(name),
  });
  reads.add(read("a"), 1);
  reads.add(read("b"), 2);
  assert.equal(reads.roundDue, true);
  reads.startRound();
  assert.equal(reads.roundDue, false);
  assert.equal(reads.full, false);
  reads.add(read("c"), 3);
  assert.equal(reads.full, true);
  assert.deepEqual(
    reads.takeConfirmed(1).map(({ index }) => index),
    [1, 2],
  );
  assert.deepEqual(reads.takeConfirmed(1), []);
  reads.startRound();
  assert.equal(reads.takeConfirmed(5).length, 1);
  assert.equal(reads.isWaiting, false);
});
