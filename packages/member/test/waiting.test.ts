/** The queues of a member at their bounds: proposals and reads that wait. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { errorOf } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { AppliedEntry } from "@quorate/store";
import { Deliveries, proposerOf } from "../src/loop/deliveries.ts";
import { LOOP_BOUNDS, type LoopBounds } from "../src/loop/limits.ts";
import {
  type ProposalOptions,
  Proposals,
  RequestIds,
  type Timeouts,
} from "../src/loop/proposals.ts";
import { type ReadIndexer, Reads } from "../src/loop/reads.ts";
import type { StoreRef } from "../src/reads/store-ref.ts";

const busy = { message: errorOf("TooManyRequests").message };
const late = { message: errorOf("Timeout").message };

const timeouts = {
  error: (_startedMs: number, isSucceeded: boolean) =>
    errorOf(isSucceeded ? "TimeoutDueToLeaderFail" : "Timeout"),
} as Timeouts;

function proposals(
  {
    bounds,
    ...options
  }: Partial<Omit<ProposalOptions, "bounds">> & { bounds?: Partial<LoopBounds> } = {},
  raft: Partial<Pick<Raft, "commitIndex" | "appliedIndex">> = {},
) {
  const clock = new ManualClock();
  const woken = { times: 0 };
  const queue = new Proposals(
    {
      bounds: { ...LOOP_BOUNDS, maxWaitingProposals: 3, ...bounds },
      maxQueuedBytes: 100,
      timeoutMs: 1000,
      successionMs: 100,
      requestLimits: { maxTxnOps: 128, versionProblem: () => undefined },
      maxRequestBytes: 1000,
      areRevokesPreferred: false,
      ...options,
    },
    {
      clock,
      turns: { areRunning: true, wake: () => woken.times++ },
      raft: raft as Raft,
      store: {} as StoreRef,
      requestIds: { next: () => 1n } as RequestIds,
      deliveries: new Deliveries(),
    },
  );
  return { clock, queue, woken };
}

/** Queues a payload: a promise of what its proposer gets. */
function queued(queue: Proposals, id: bigint, payload: Uint8Array): Promise<AppliedEntry> {
  const result = Promise.withResolvers<AppliedEntry>();
  queue.queue(id, payload, proposerOf(result));
  return result.promise;
}

/** The result of an entry, told apart by a text. */
const result = (text: string) => text as unknown as AppliedEntry;

test("proposals: as many as may wait, and one more is refused and forgotten", async () => {
  const { queue, woken } = proposals();
  const waiting = [1n, 2n, 3n].map((id) => queued(queue, id, new Uint8Array(10)));
  await assert.rejects(queued(queue, 4n, new Uint8Array(10)), busy);
  assert.equal(queue.waitingCount, 3);
  assert.equal(woken.times, 1, "a full queue wakes the loop once");
  assert.equal(queue.takeQueue(1).length, 3);
  queue.settle(4n, result("no waiter"));
  for (const id of [1n, 2n, 3n]) queue.settle(id, result(`result ${id}`));
  assert.deepEqual(await Promise.all(waiting), ["result 1", "result 2", "result 3"]);
});

test("proposals: bytes that no leader has taken are bounded, and count again after being put back", async () => {
  const { queue } = proposals({ bounds: { maxWaitingProposals: 100 } });
  queued(queue, 1n, new Uint8Array(60)).catch(() => {});
  await assert.rejects(queued(queue, 2n, new Uint8Array(41)), busy);
  const taken = queue.takeQueue(1);
  queued(queue, 3n, new Uint8Array(40)).catch(() => {});
  queue.putBack(taken);
  await assert.rejects(queued(queue, 4n, new Uint8Array(1)), busy);
  assert.deepEqual(
    queue.takeQueue(1).map((payload) => payload.length),
    [60, 40],
    "what was put back goes first",
  );
});

test("proposals: each ends when its time is up, and what waited for a leader is not proposed later", async () => {
  const { clock, queue } = proposals();
  const first = queued(queue, 1n, new Uint8Array(1));
  clock.advance(500);
  const second = queued(queue, 2n, new Uint8Array(1));
  clock.advance(500);
  queue.expire(timeouts);
  await assert.rejects(first, late);
  assert.equal(queue.waitingCount, 1);
  clock.advance(500);
  queue.expire(timeouts);
  await assert.rejects(second, late);
  assert.equal(queue.queuedCount, 0);
  assert.equal(queue.failed, 2);
});

test("proposals: what waits for a leader is dropped, each by itself, when its time is up or its caller has gone", async () => {
  const { clock, queue } = proposals({ bounds: { maxWaitingProposals: 10 } });
  const ends: string[] = [];
  const propose = (id: bigint) => {
    const proposer = {
      isGone: false,
      applied: () => assert.fail("nothing is applied"),
      refused: (error: Error) => ends.push(`${id}: ${error.message}`),
    };
    queue.queue(id, new Uint8Array([Number(id)]), proposer);
    return proposer;
  };
  propose(1n);
  clock.advance(500);
  propose(2n);
  const gone = propose(3n);
  propose(4n);
  gone.isGone = true;
  clock.advance(500);
  queue.expire(timeouts);
  await Promise.resolve();
  assert.deepEqual(
    ends.map((end) => end[0]),
    ["1", "3"],
  );
  assert.equal(queue.waitingCount, 2);
  assert.deepEqual(
    queue.takeQueue(1).map(([id]) => id),
    [2, 4],
  );
  // Raft has it now: its result is waited for.
  const taken = propose(5n);
  queue.takeQueue(1);
  taken.isGone = true;
  queue.expire(timeouts);
  assert.equal(queue.waitingCount, 3);
});

test("proposals: what a former leader had ends an election timeout after its successor's entries are applied", async () => {
  const { clock, queue } = proposals({ bounds: { maxWaitingProposals: 10 } });
  const ends: string[] = [];
  const propose = (id: bigint) =>
    queued(queue, id, new Uint8Array([Number(id)])).then(
      (result) => ends.push(`${id}: ${result}`),
      (error: Error) => ends.push(`${id}: ${error.message}`),
    );
  propose(1n);
  propose(2n);
  propose(3n);
  propose(4n);
  const taken = queue.takeQueue(1);
  // Raft takes only two: the others go to the next leader.
  queue.putBack(taken.slice(2));
  queue.succeeded(1);
  clock.advance(100);
  queue.expire(timeouts);
  await Promise.resolve();
  assert.deepEqual(ends, [], "their own leader's entries end nothing");
  propose(5n);
  assert.deepEqual(
    queue.takeQueue(2).map(([id]) => id),
    [3, 4, 5],
  );
  queue.succeeded(2);
  clock.advance(99);
  queue.expire(timeouts);
  assert.equal(queue.waitingCount, 5);
  // One comes on a way round, within the time that is left for it.
  queue.settle(2n, result("late"));
  clock.advance(1);
  queue.expire(timeouts);
  queue.succeeded(2);
  clock.advance(700);
  queue.expire(timeouts);
  for (const id of [3n, 4n, 5n]) queue.settle(id, result("done"));
  await new Promise(setImmediate);
  const failed = errorOf("TimeoutDueToLeaderFail").message;
  assert.deepEqual(ends, ["2: late", `1: ${failed}`, "3: done", "4: done", "5: done"]);
});

test("proposals: what Raft did not take has its own time, whoever leads meanwhile", async () => {
  const { clock, queue } = proposals();
  const first = queued(queue, 1n, new Uint8Array([1]));
  queued(queue, 2n, new Uint8Array([2])).catch(() => {});
  queue.putBack(queue.takeQueue(1).slice(1));
  queue.succeeded(2);
  clock.advance(100);
  queue.expire(timeouts);
  await assert.rejects(first, { message: errorOf("TimeoutDueToLeaderFail").message });
  assert.equal(queue.waitingCount, 1);
  assert.deepEqual(
    queue.takeQueue(2).map(([id]) => id),
    [2],
  );
});

test("proposals: successions beyond the bound leave a request its own time", async () => {
  const { clock, queue } = proposals();
  const { maxSuccessions } = LOOP_BOUNDS;
  const result = queued(queue, 1n, new Uint8Array(1));
  queue.takeQueue(maxSuccessions + 1);
  for (let term = 1; term <= maxSuccessions + 5; term++) queue.succeeded(term);
  clock.advance(100);
  queue.expire(timeouts);
  assert.equal(queue.waitingCount, 1);
  clock.advance(900);
  queue.expire(timeouts);
  await assert.rejects(result, late);
});

test("proposals: one whose entry is being applied is waited for, unless that is given up", async () => {
  const { clock, queue } = proposals();
  const results = [1n, 2n, 3n].map((id) => queued(queue, id, new Uint8Array(1)));
  const ends = results.map((result) => result.catch((error: Error) => error.message));
  assert.deepEqual([queue.applies(9n), queue.applies(2n)], [false, true]);
  clock.advance(1000);
  queue.expire(timeouts);
  assert.equal(queue.waitingCount, 1);
  clock.advance(60_000);
  queue.expire(timeouts);
  queue.settle(2n, result("done"));
  assert.deepEqual(await Promise.all(ends), [late.message, "done", late.message]);
  // A snapshot takes the place of the entry: there is no result.
  const fourth = queued(queue, 4n, new Uint8Array(1));
  assert.ok(queue.applies(4n));
  queue.abandons();
  clock.advance(1000);
  queue.expire(timeouts);
  await assert.rejects(fourth, late);
  assert.deepEqual([queue.failed, queue.waitingCount], [3, 0]);
});

test("proposals: so many entries may be applied later, and more before a revocation with PriorityRequest", async () => {
  const refused = async (
    kind: "put" | "leaseRevoke",
    gap: number,
    areRevokesPreferred: boolean,
  ): Promise<boolean> => {
    const options = { areRevokesPreferred };
    const { queue } = proposals(options, { commitIndex: 7 + gap, appliedIndex: 7 });
    const proposed = Promise.withResolvers<AppliedEntry>();
    queue.enqueue(undefined, kind, new Uint8Array(0), proposerOf(proposed));
    queue.settle(1n, result("applied"));
    return proposed.promise.then(
      () => false,
      (error: Error) => error.message === busy.message,
    );
  };
  const { maxApplyGapEntries, maxPreferredGapEntries } = LOOP_BOUNDS;
  for (const preferred of [false, true]) {
    assert.equal(await refused("put", maxApplyGapEntries, preferred), false);
    assert.equal(await refused("put", maxApplyGapEntries + 1, preferred), true);
    assert.equal(await refused("leaseRevoke", maxApplyGapEntries + 1, preferred), !preferred);
    assert.equal(await refused("leaseRevoke", maxPreferredGapEntries + 1, preferred), true);
  }
});

test("proposals: after the end nothing is taken any more", async () => {
  const { queue } = proposals();
  const waiting = queued(queue, 1n, new Uint8Array(1));
  queue.failAll(errorOf("Stopped"));
  await assert.rejects(waiting, { message: errorOf("Stopped").message });
  await assert.rejects(queued(queue, 2n, new Uint8Array(1)), {
    message: errorOf("Stopped").message,
  });
});

function reads(maxWaiting = 3) {
  const clock = new ManualClock();
  const asked: number[] = [];
  const raft: ReadIndexer = {
    readIndex: (context) => {
      asked.push(Number(new DataView(context.buffer).getBigUint64(0)));
      return "accepted";
    },
  };
  const queue = new Reads(
    { maxWaiting, timeoutMs: 1000, retryMs: 100 },
    { clock, turns: { wake: () => {} }, deliveries: new Deliveries(), firstRound: 7 },
  );
  const answer = (round: number, index: number) => {
    const context = new Uint8Array(8);
    new DataView(context.buffer).setBigUint64(0, BigInt(round));
    queue.answered(context, index);
  };
  return { clock, queue, asked, raft, answer };
}

test("reads that arrive in one turn share a round, and are let go when its index is applied, not before", async () => {
  const { queue, asked, raft, answer } = reads();
  let done = 0;
  const both = [queue.wait(), queue.wait()].map((read) => read.then(() => done++));
  queue.startRound(raft);
  queue.startRound(raft);
  assert.deepEqual(asked, [7]);
  answer(7, 20);
  queue.release(19);
  await Promise.resolve();
  assert.equal(done, 0);
  queue.release(20);
  await Promise.all(both);
  assert.equal(queue.waitingCount, 0);
});

test("reads: a round is younger than all its reads: one that comes later gets the next", async () => {
  const { queue, asked, raft, answer } = reads();
  const first = queue.wait();
  queue.startRound(raft);
  const second = queue.wait();
  answer(7, 5);
  queue.release(5);
  await first;
  queue.startRound(raft);
  assert.deepEqual(asked, [7, 8]);
  answer(8, 6);
  queue.release(6);
  await second;
});

test("reads: retried when no response comes and when the leader changes; ended when their time is up", async () => {
  const { clock, queue, asked, raft } = reads();
  const read = queue.wait();
  queue.startRound(raft);
  clock.advance(100);
  queue.expire(raft);
  queue.leaderChanged(raft);
  assert.deepEqual(asked, [7, 7, 7]);
  assert.equal(queue.slowRounds, 1);
  clock.advance(900);
  queue.expire(raft);
  await assert.rejects(read, late);
  assert.equal(queue.waitingCount, 0);
});

test("reads: as many as may wait, and one more is refused", async () => {
  const { queue } = reads(2);
  const waiting = [queue.wait(), queue.wait()];
  await assert.rejects(queue.wait(), busy);
  queue.failAll(errorOf("Stopped"));
  for (const read of waiting) await assert.rejects(read, { message: errorOf("Stopped").message });
  await assert.rejects(queue.wait(), { message: errorOf("Stopped").message });
});

test("reads: foreign answers change nothing", () => {
  const { queue, answer } = reads();
  answer(999, 1);
  queue.answered(new Uint8Array(3), 1);
  queue.release(100);
  assert.equal(queue.waitingCount, 0);
});

test("request ids grow, and carry the member's last bytes", () => {
  const ids = new RequestIds(0xabcd_0000_0000_1234n, 1_000_000);
  const [first, second] = [ids.next(), ids.next()];
  assert.equal(first >> 48n, 0x1234n);
  assert.equal(second, first + 1n);
});

test("proposals: a wait that begins after the end fails at once", async () => {
  const { queue } = proposals();
  queue.failAll(errorOf("Stopped"));
  await assert.rejects(queue.wait(1n), { message: errorOf("Stopped").message });
  assert.equal(queue.waitingCount, 0);
});
