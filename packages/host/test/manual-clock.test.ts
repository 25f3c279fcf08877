/** The manual clock beyond the contract. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { SeededRandom } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";

it("stands still until advanced, and jumps only its wall time", () => {
  const clock = new ManualClock(1000);
  assert.deepEqual([clock.wallMs(), clock.monotonicMs(), clock.nextDueMs()], [1000, 0, undefined]);
  clock.advance(5);
  clock.jumpWall(-500);
  assert.deepEqual([clock.wallMs(), clock.monotonicMs()], [505, 5]);
});

it("runs each task at its due time, also tasks set by tasks", () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  clock.after(10, () => {
    seen.push(`a${clock.monotonicMs()}`);
    clock.after(5, () => seen.push(`b${clock.monotonicMs()}`));
    clock.endOfTurn(() => seen.push("end"));
  });
  clock.after(12, () => seen.push(`c${clock.monotonicMs()}`));
  clock.every(4, () => seen.push(`t${clock.monotonicMs()}`));
  clock.advance(15);
  assert.deepEqual(seen, ["t4", "t8", "a10", "end", "c12", "t12", "b15"]);
  assert.equal(clock.nextDueMs(), 16);
});

it("runs a thousand tasks in the order of a sorted list", () => {
  const clock = new ManualClock();
  const random = new SeededRandom(5n);
  const expected: { dueMs: number; order: number }[] = [];
  const ran: number[] = [];
  for (let order = 0; order < 1000; order++) {
    const dueMs = random.below(50);
    const timer = clock.after(dueMs, () => ran.push(order));
    if (random.below(4) === 0) timer.cancel();
    else expected.push({ dueMs, order });
  }
  clock.advance(50);
  expected.sort((a, b) => a.dueMs - b.dueMs || a.order - b.order);
  assert.deepEqual(
    ran,
    expected.map((task) => task.order),
  );
});

it("lets promises settle between tasks in advanceAsync", async () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  const sleep = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
  const worker = (async () => {
    for (let i = 0; i < 3; i++) {
      await sleep(10);
      seen.push(`w${clock.monotonicMs()}`);
    }
  })();
  await clock.advanceAsync(30);
  await worker;
  assert.deepEqual(seen, ["w10", "w20", "w30"]);
});

it("detects a turn that never ends", () => {
  const clock = new ManualClock();
  const again = () => clock.endOfTurn(again);
  again();
  assert.throws(() => clock.advance(1), /forever/);
});
