/** The queue of controllers: each key once at a time, pauses, and its bound. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { MAX_RETRY_PAUSE_MS, WorkQueue } from "../../src/controllers/work-queue.ts";

function queueOf(process: (key: string) => Promise<boolean>, more = {}) {
  const clock = new ManualClock();
  const options = { name: "test", concurrency: 2, maxKeys: 100, process, ...more };
  return { clock, queue: new WorkQueue<string>(options, clock, silentLogger) };
}

test("a key is worked on once at a time, and again when it was added meanwhile", async () => {
  const ends: (() => void)[] = [];
  const started: string[] = [];
  const { clock, queue } = queueOf((key) => {
    started.push(key);
    return new Promise((resolve) => ends.push(() => resolve(true)));
  });
  for (const key of ["a", "b", "c", "a", "b"]) queue.add(key);
  assert.deepEqual(started, ["a", "b"]);
  ends[0]();
  await clock.settle();
  // "a" and "b" were added while they ran.
  assert.deepEqual(started, ["a", "b", "c"]);
  for (const end of ends) end();
  await clock.settle();
  for (const end of ends) end();
  await clock.settle();
  assert.deepEqual(started.sort(), ["a", "a", "b", "b", "c"]);
  assert.equal(queue.size, 0);
});

test("what fails is tried again after growing pauses; success forgets them", async () => {
  const atMs: number[] = [];
  let fails = 20;
  const { clock, queue } = queueOf(async () => {
    atMs.push(clock.monotonicMs());
    if (fails-- > 0) throw new Error("not yet");
    return true;
  });
  queue.add("a");
  await clock.advanceAsync(600_000);
  const pauses = atMs.slice(1).map((ms, i) => ms - atMs[i]);
  assert.deepEqual(pauses.slice(0, 5), [5, 10, 20, 40, 80]);
  assert.equal(Math.max(...pauses), MAX_RETRY_PAUSE_MS);
  assert.equal(atMs.length, 21);
  fails = 1;
  const before = atMs.length;
  queue.add("a");
  await clock.advanceAsync(6);
  assert.equal(atMs.length - before, 2);
});

test("beyond its bound keys are dropped, and all are looked at again when it is empty", async () => {
  const done: string[] = [];
  let rescans = 0;
  const { clock, queue } = queueOf(
    async (key) => {
      done.push(key);
      return true;
    },
    {
      maxKeys: 3,
      rescan: () => {
        rescans++;
        if (rescans === 1) for (const key of ["d", "e"]) queue.add(key);
      },
    },
  );
  for (const key of ["a", "b", "c", "d", "e"]) queue.add(key);
  queue.addAfter("f", 10);
  assert.equal(queue.size, 3);
  await clock.settle();
  assert.deepEqual(done, ["a", "b", "c", "d", "e"]);
  assert.equal(rescans, 1);
});

test("a queue that was stopped does nothing more", async () => {
  let runs = 0;
  const { clock, queue } = queueOf(async () => {
    runs++;
    return false;
  });
  queue.add("a");
  await clock.settle();
  queue.stop();
  queue.add("b");
  queue.addAfter("c", 1);
  await clock.advanceAsync(60_000);
  assert.equal(runs, 1);
});
