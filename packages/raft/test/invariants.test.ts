/** Each invariant is enforced in one file and broken here once. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { EMPTY, InvariantError, raftpb } from "@quorate/proto";
import { type InitialState, type InvariantNumber, invariants, MAX_TERM, Raft } from "../index.ts";
import { checkConfState } from "../src/confchange.ts";
import { RaftLog } from "../src/log.ts";
import { Machine } from "../src/machine.ts";
import type { Replica } from "../src/replica.ts";
import { Inflights, Progress } from "../src/tracker.ts";
import { newCluster, newLeader, pump, testConfig } from "./helpers.ts";

const { MsgApp, MsgAppResp } = raftpb.MessageType;

function entry(index: number, term: number): raftpb.Entry {
  return { type: 0, term, index, data: EMPTY };
}

function initial(changes: Partial<InitialState>): InitialState {
  return {
    hardState: raftpb.HardState.create(),
    snapshot: raftpb.SnapshotMetadata.create(),
    entries: [],
    applied: 0,
    ...changes,
  };
}

function machine(): Machine {
  return new Machine(
    testConfig(1n),
    initial({ confState: raftpb.ConfState.create({ voters: [1n, 2n] }) }),
  );
}

function replica(): Replica {
  return machine().replica;
}

/** For each number the ways to break it. */
const breaks: { readonly [code in InvariantNumber]: readonly (() => void)[] } = {
  "RAFT-1": [
    () => new RaftLog(initial({ entries: [entry(2, 1)] }), 1),
    () => new RaftLog(initial({ entries: [entry(1, 2), entry(2, 1)] }), 1),
    () => new RaftLog(initial({ applied: 1 }), 1),
    () =>
      new RaftLog(
        initial({ snapshot: raftpb.SnapshotMetadata.create({ index: 3, term: 1 }), applied: 2 }),
        1,
      ),
    () => new RaftLog(initial({ hardState: { term: 1, vote: 0n, commit: 1 } }), 1),
  ],
  "RAFT-2": [
    () =>
      new RaftLog(
        initial({ entries: [entry(1, 1)], hardState: { term: 1, vote: 0n, commit: 1 } }),
        1,
      ).commitTo(2),
  ],
  "RAFT-3": [
    () => {
      const log = new RaftLog(
        initial({ entries: [entry(1, 1)], hardState: { term: 1, vote: 0n, commit: 1 } }),
        1,
      );
      log.tryAppend(0, 0, [entry(1, 2)], 0);
    },
  ],
  "RAFT-4": [
    () => new RaftLog(initial({}), 1).append([entry(2, 1)]),
    () => new RaftLog(initial({}), 1).append([entry(1, 2), entry(2, 1)]),
  ],
  "RAFT-5": [
    () => new RaftLog(initial({}), 1).slice(1, 1),
    () => {
      const log = new RaftLog(
        initial({
          entries: [entry(1, 1)],
          hardState: { term: 1, vote: 0n, commit: 1 },
          applied: 1,
        }),
        1,
      );
      log.compact(1, raftpb.ConfState.create());
      log.append([entry(2, 1)]);
      log.collect(1, 1);
    },
  ],
  "RAFT-6": [() => newLeader(1).applied(9)],
  "RAFT-7": [() => newLeader(1).persisted(99)],
  "RAFT-8": [
    () => {
      const raft = newLeader(2);
      raft.propose([EMPTY]);
      raft.compact(raft.lastIndex, raft.confState);
    },
  ],
  "RAFT-9": [
    () => {
      const one = replica();
      one.enterTerm(5);
      one.enterTerm(4);
    },
  ],
  "RAFT-10": [
    () => {
      const one = replica();
      one.castVote(2n);
      one.castVote(1n);
    },
  ],
  "RAFT-11": [
    () => machine().becomeLeader(),
    () => {
      const one = machine();
      one.becomeCandidate();
      one.becomeLeader();
      one.becomeCandidate();
    },
  ],
  "RAFT-12": [
    () =>
      new Progress(2n, 4, false, { maxInflightMessages: 1, maxInflightBytes: 1 }).acknowledge(
        99,
        3,
      ),
  ],
  "RAFT-13": [
    () => {
      const window = new Inflights(1, 100);
      window.add(1, 1);
      window.add(2, 1);
    },
    () => {
      const window = new Inflights(2, 100);
      window.add(2, 1);
      window.add(2, 1);
    },
  ],
  "RAFT-14": [
    () => checkConfState(raftpb.ConfState.create({ voters: [1n], learners: [1n] })),
    () =>
      checkConfState(
        raftpb.ConfState.create({ voters: [1n], votersOutgoing: [2n], learners: [2n] }),
      ),
    () =>
      checkConfState(
        raftpb.ConfState.create({ voters: [1n], votersOutgoing: [1n], learnersNext: [2n] }),
      ),
    () =>
      checkConfState(
        raftpb.ConfState.create({ voters: [1n], votersOutgoing: [1n], learnersNext: [1n] }),
      ),
    () => checkConfState(raftpb.ConfState.create({ voters: [1n], autoLeave: true })),
    () => checkConfState(raftpb.ConfState.create({ votersOutgoing: [1n] })),
  ],
  "RAFT-15": [() => newLeader(1).applyConfChange(raftpb.ConfChangeV2.create())],
  "RAFT-16": [() => replica().enterTerm(MAX_TERM + 1)],
  "RAFT-17": [
    () => {
      const one = machine();
      one.becomeCandidate();
      const leader = one.becomeLeader();
      const progress = leader.tracker.get(2n)!;
      progress.recentActive = true;
      progress.next = 100;
      leader.flush();
    },
  ],
  "RAFT-18": [
    () => {
      const one = replica();
      one.send(one.message(MsgApp, 1n));
    },
    () => {
      const one = replica();
      one.sendAfterSync(one.message(MsgAppResp, 1n));
    },
  ],
  "RAFT-19": [
    () =>
      new RaftLog(
        initial({ entries: [entry(1, 1)], hardState: { term: 1, vote: 0n, commit: 0 } }),
        1,
      ).append([entry(1, 1)]),
  ],
  "RAFT-20": [
    () => {
      const raft = new Raft(testConfig(1n), { ...newCluster(2), applied: 1 });
      pump(raft);
    },
  ],
  "RAFT-21": [1, -1].map((wrong) => () => {
    const one = machine();
    one.becomeCandidate();
    const leader = one.becomeLeader();
    const { log } = one.replica;
    const dataBytes = log.dataBytes.bind(log);
    Object.defineProperties(log, {
      stable: { value: 1 },
      dataBytes: { value: (from: number, to: number) => dataBytes(from, to) + wrong },
    });
    leader.tracker.get(2n)!.match = 1;
    leader.persisted();
  }),
};

for (const [code, ways] of Object.entries(breaks)) {
  test(`${code}: ${invariants[code as InvariantNumber]}`, () => {
    for (const way of ways) {
      assert.throws(way, (error: unknown) => {
        assert.ok(error instanceof InvariantError, String(error));
        assert.equal(error.code, code, error.message);
        assert.ok(error.message.startsWith(`${code}: ${invariants[code as InvariantNumber]}`));
        return true;
      });
    }
  });
}

test("each invariant is enforced in one file", () => {
  const src = new URL("../src/", import.meta.url);
  const files = readdirSync(src).map((name) => ({
    name,
    text: readFileSync(new URL(name, src), "utf8"),
  }));
  for (const code of Object.keys(invariants)) {
    const enforcing = files
      .filter(({ text }) => new RegExp(`violated\\(\\s*"${code}"`).test(text))
      .map(({ name }) => name);
    assert.equal(enforcing.length, 1, `${code}: ${enforcing.join(" ")}`);
  }
});
