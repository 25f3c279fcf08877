/** Timeouts of many requests with one timer. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Timer } from "@quorate/host";
import { SharedTimeouts } from "../../src/server/api-server.ts";

/** A clock that moves when the test says so. */
function manualClock() {
  let nowMs = 0;
  const timers: { readonly dueMs: number; readonly task: () => void }[] = [];
  return {
    timers,
    monotonicMs: () => nowMs,
    after: (delayMs: number, task: () => void): Timer => {
      timers.push({ dueMs: nowMs + delayMs, task });
      return { cancel: () => assert.fail("no timer is cancelled") };
    },
    pass: (ms: number) => {
      const endMs = nowMs + ms;
      for (;;) {
        const at = timers.findIndex(({ dueMs }) => dueMs <= endMs);
        if (at === -1) break;
        const [{ dueMs, task }] = timers.splice(at, 1);
        nowMs = dueMs;
        task();
      }
      nowMs = endMs;
    },
  };
}

test("each request times out after its delay, in order, with one timer for all", () => {
  const clock = manualClock();
  const timeouts = new SharedTimeouts(clock, 5000);
  const fired: string[] = [];
  timeouts.add(() => fired.push("first"));
  clock.pass(2500);
  timeouts.add(() => fired.push("second"));
  assert.equal(clock.timers.length, 1);
  clock.pass(2499);
  assert.deepEqual(fired, []);
  clock.pass(1);
  assert.deepEqual(fired, ["first"]);
  clock.pass(2500);
  assert.deepEqual(fired, ["first", "second"]);
});

test("a request that has ended does not time out, and an idle server has no timer", () => {
  const clock = manualClock();
  const timeouts = new SharedTimeouts(clock, 5000);
  const forgets = Array.from({ length: 1000 }, () => timeouts.add(() => assert.fail("forgotten")));
  for (const forget of forgets) forget();
  assert.equal(timeouts.size, 0);
  clock.pass(1000);
  assert.equal(clock.timers.length, 0);
});

test("a delay below the timer's interval is kept", () => {
  const clock = manualClock();
  const timeouts = new SharedTimeouts(clock, 30);
  let fired = 0;
  timeouts.add(() => fired++);
  clock.pass(29);
  assert.equal(fired, 0);
  clock.pass(1);
  assert.equal(fired, 1);
});
