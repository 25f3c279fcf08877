/** Requests that wait for the cache: to be filled, to be fresh, and for the store's revision. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { ProgressRequester } from "../../src/cacher/progress-requester.ts";
import { MAX_READY_WAITERS, READY_WAIT_MS, Readiness } from "../../src/cacher/readiness.ts";
import { RevisionReader } from "../../src/cacher/revision-reader.ts";
import { FRESH_TIMEOUT_MS, Freshness, MAX_FRESH_WAITERS } from "../../src/cacher/watch-cache.ts";
import { ApiError } from "../../src/meta/status.ts";

/** What a promise has come to, without waiting for it. */
async function outcomeOf(clock: ManualClock, promise: Promise<unknown>): Promise<string> {
  let outcome = "waits";
  promise.then(
    () => {
      outcome = "done";
    },
    (error: Error & { code?: string }) => {
      outcome = error.code ?? error.message;
    },
  );
  await clock.settle();
  return outcome;
}

function freshness() {
  const clock = new ManualClock();
  let requests = 0;
  const progress = new ProgressRequester(clock, async () => {
    requests++;
    throw new Error("the next request is the retry");
  });
  const waits: number[] = [];
  const fresh = new Freshness(clock, progress, (ms) => waits.push(ms));
  return { clock, fresh, waits, requests: () => requests };
}

test("a request waits until the cache has reached its revision, and asks for progress", async () => {
  const { clock, fresh, waits, requests } = freshness();
  fresh.reached(5);
  await fresh.wait(5, undefined);
  await fresh.wait(0, undefined);
  assert.equal(requests(), 0);
  const seven = fresh.wait(7, undefined);
  const nine = fresh.wait(9, undefined);
  assert.equal(requests(), 1);
  await clock.advanceAsync(1);
  assert.equal(requests(), 1);
  await clock.advanceAsync(1);
  assert.equal(requests(), 2, "one for the second request, after 2 ms");
  await clock.advanceAsync(248);
  assert.equal(requests(), 4, "then one each 100 ms");
  fresh.reached(8);
  await seven;
  assert.equal(await outcomeOf(clock, nine), "waits");
  await clock.advanceAsync(FRESH_TIMEOUT_MS);
  assert.equal(await outcomeOf(clock, nine), "TooLargeResourceVersion");
  assert.equal(fresh.waiting, 0);
  const after = requests();
  await clock.advanceAsync(1000);
  assert.equal(requests(), after, "no request without a waiter");
  assert.deepEqual(waits, [0, 250, 3000]);
});

test("an aborted request waits no more", async () => {
  const { clock, fresh } = freshness();
  const stop = new AbortController();
  const waiting = fresh.wait(7, stop.signal);
  stop.abort(new Error("gone"));
  assert.equal(await outcomeOf(clock, waiting), "gone");
  assert.equal(await outcomeOf(clock, fresh.wait(7, stop.signal)), "gone");
  assert.equal(fresh.waiting, 0);
});

test("requests that wait for freshness are bounded", async () => {
  const { clock, fresh } = freshness();
  const all: Promise<void>[] = [];
  for (let i = 0; i < MAX_FRESH_WAITERS; i++) all.push(fresh.wait(7, undefined));
  await assert.rejects(fresh.wait(7, undefined), (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.httpStatus, 429);
    return true;
  });
  fresh.reached(7);
  await Promise.all(all);
  assert.equal(await outcomeOf(clock, fresh.wait(8, undefined)), "waits");
});

test("a request waits for the cache to be filled, a second at the most", async () => {
  const clock = new ManualClock();
  const readiness = new Readiness(clock);
  const soon = readiness.wait(undefined);
  await clock.advanceAsync(READY_WAIT_MS / 2);
  readiness.ready();
  assert.equal(await outcomeOf(clock, soon), "done");
  assert.equal(readiness.generation, 1);
  assert.equal(readiness.reason, undefined);
  readiness.pending("the store is down");
  assert.equal(readiness.reason, "storage is (re)initializing: the store is down");
  const late = readiness.wait(undefined).catch((error: unknown) => error);
  await clock.advanceAsync(READY_WAIT_MS);
  const error = await late;
  assert.ok(error instanceof ApiError);
  assert.equal(error.httpStatus, 429);
  assert.equal(error.message, "storage is (re)initializing: the store is down");
  assert.equal(error.details?.retryAfterSeconds, 1);
});

test("the time after which a client should retry grows to 30 s", async () => {
  const clock = new ManualClock();
  const readiness = new Readiness(clock);
  for (const [downMs, seconds] of [
    [12_000, 2],
    [40_000, 11],
    [600_000, 30],
  ] as const) {
    await clock.advanceAsync(downMs - clock.monotonicMs());
    const refused = readiness.wait(undefined).catch((error: ApiError) => error);
    await clock.advanceAsync(READY_WAIT_MS);
    assert.equal((await refused)?.details?.retryAfterSeconds, seconds);
  }
});

test("requests that wait for the cache to be filled are bounded; a stopped cache has none", async () => {
  const clock = new ManualClock();
  const readiness = new Readiness(clock);
  const stop = new AbortController();
  const all: Promise<void>[] = [];
  for (let i = 0; i < MAX_READY_WAITERS - 1; i++) all.push(readiness.wait(undefined));
  const aborted = readiness.wait(stop.signal);
  assert.equal(await outcomeOf(clock, readiness.wait(undefined)), "TooManyRequests");
  stop.abort(new Error("gone"));
  assert.equal(await outcomeOf(clock, aborted), "gone");
  readiness.stop();
  for (const result of await Promise.allSettled(all)) assert.equal(result.status, "rejected");
  assert.equal(readiness.reason, "apiserver cacher is stopped");
  readiness.ready();
  assert.equal(readiness.isReady, false);
});

test("requests share reads of the store's revision that begin after them", async () => {
  const reads: ((revision: number) => void)[] = [];
  const reader = new RevisionReader(() => new Promise((resolve) => reads.push(resolve)));
  const first = reader.read();
  const second = reader.read();
  const third = reader.read();
  assert.equal(reads.length, 1);
  reads[0](5);
  assert.equal(await first, 5);
  assert.equal(reads.length, 2);
  reads[1](6);
  assert.deepEqual(await Promise.all([second, third]), [6, 6]);
  const fourth = reader.read();
  assert.equal(reads.length, 3);
  reads[2](7);
  assert.equal(await fourth, 7);
});

test("a read that fails fails only for those that share it", async () => {
  let calls = 0;
  const reader = new RevisionReader(async () => {
    if (++calls === 1) throw new Error("down");
    return calls;
  });
  const first = reader.read();
  const second = reader.read();
  await assert.rejects(first, /down/);
  assert.equal(await second, 2);
});
