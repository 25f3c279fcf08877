/** Rounds of linearizable reads: which reads a response completes, and when. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { Deliveries } from "../src/loop/deliveries.ts";
import { type ReadIndexer, Reads } from "../src/loop/reads.ts";

function make() {
  const clock = new ManualClock();
  const reads = new Reads(
    { maxWaiting: 100, timeoutMs: 5000, retryMs: 500 },
    { clock, turns: { wake: () => {} }, deliveries: new Deliveries(), firstRound: 1 },
  );
  const asked: Uint8Array[] = [];
  const raft: ReadIndexer = {
    readIndex: (context) => {
      asked.push(context);
      return "accepted";
    },
  };
  const done: string[] = [];
  const read = (name: string) => void reads.wait().then(() => done.push(name));
  /** Lets promises react. */
  const settle = async () => {
    for (let i = 0; i < 5; i++) await Promise.resolve();
    return done.splice(0).join(" ");
  };
  return { clock, reads, asked, raft, read, settle };
}

test("a read is not let go by a round that was asked before it came: a write in between would be missed", async () => {
  const { reads, asked, raft, read, settle } = make();
  read("early");
  reads.startRound(raft);
  read("late");
  reads.answered(asked[0], 7);
  reads.release(7);
  assert.equal(await settle(), "early");
  reads.startRound(raft);
  assert.equal(asked.length, 2);
  assert.notDeepEqual(asked[1], asked[0]);
  reads.answered(asked[1], 9);
  reads.release(8);
  assert.equal(await settle(), "", "index 9 is not applied");
  reads.release(9);
  assert.equal(await settle(), "late");
  assert.equal(reads.waitingCount, 0);
});

test("a round that is retried keeps its number and its first index, and takes no more reads", async () => {
  const { reads, asked, raft, read, settle } = make();
  read("early");
  reads.startRound(raft);
  reads.leaderChanged(raft);
  read("late");
  assert.deepEqual(asked[1], asked[0]);
  reads.answered(asked[0], 7);
  reads.answered(asked[1], 3);
  reads.release(6);
  assert.equal(await settle(), "");
  reads.release(7);
  assert.equal(await settle(), "early");
  assert.equal(reads.waitingCount, 1);
});

test("a round without an answer is asked again every so often, and not at each tick", () => {
  const { clock, reads, asked, raft, read } = make();
  read("early");
  reads.startRound(raft);
  const askedAfterMs: number[] = [];
  for (let ms = 100; ms <= 1600; ms += 100) {
    clock.advance(100);
    const before = asked.length;
    reads.expire(raft);
    if (asked.length > before) askedAfterMs.push(ms);
  }
  assert.deepEqual([askedAfterMs, reads.slowRounds], [[500, 1000, 1500], 3]);
});

test("all reads of a turn share a round, and none is started where no read waits", async () => {
  const { reads, asked, raft, read, settle } = make();
  reads.startRound(raft);
  assert.equal(asked.length, 0);
  for (const name of ["a", "b", "c"]) read(name);
  reads.startRound(raft);
  assert.equal(asked.length, 1);
  reads.answered(asked[0], 1);
  reads.release(1);
  assert.equal(await settle(), "a b c");
});
