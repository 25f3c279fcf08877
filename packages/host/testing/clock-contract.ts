/** The contract suite of Clock. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "../src/clock.ts";

/** A clock and the way to let its time pass. */
export interface ClockUnderTest {
  readonly clock: Clock;
  /** Resolves when at least `ms` have passed on the clock and due tasks have run. */
  pass(ms: number): Promise<void>;
}

/** Registers the suite. */
export function clockContract(name: string, make: () => ClockUnderTest): void {
  describe(`clock: ${name}`, () => {
    it("has a plausible wall time and a monotonic time that advances with it", async () => {
      const { clock, pass } = make();
      const wallMs = clock.wallMs();
      assert.ok(wallMs > Date.UTC(2020, 0) && wallMs < Date.UTC(2100, 0));
      const startMs = clock.monotonicMs();
      await pass(10);
      assert.ok(clock.monotonicMs() >= startMs + 10);
    });

    it("runs a task once, not before its delay is over", async () => {
      const { clock, pass } = make();
      for (const delayMs of [0, 0.5, 3, 7.25]) {
        const startMs = clock.monotonicMs();
        const ranMs: number[] = [];
        clock.after(delayMs, () => ranMs.push(clock.monotonicMs()));
        assert.deepEqual(ranMs, [], "a task does not run inside the call that sets it");
        await pass(25);
        const [tookMs = -1, again] = ranMs.map((ms) => ms - startMs);
        assert.equal(again, undefined, "it runs once");
        assert.ok(tookMs >= delayMs, `ran ${tookMs} ms after it was set with ${delayMs} ms`);
      }
    });

    it("runs tasks in the order of their times, and tasks of the same time in the order of setting", async () => {
      const { clock, pass } = make();
      const order: string[] = [];
      clock.after(30, () => order.push("c1"));
      clock.after(15, () => order.push("b1"));
      clock.after(0, () => order.push("a1"));
      clock.after(0, () => order.push("a2"));
      clock.after(15, () => order.push("b2"));
      clock.after(30, () => order.push("c2"));
      await pass(45);
      assert.deepEqual(order, ["a1", "a2", "b1", "b2", "c1", "c2"]);
    });

    it("cancels timers, also from inside another task and twice", async () => {
      const { clock, pass } = make();
      let ran = 0;
      const first = clock.after(5, () => ran++);
      const second = clock.after(10, () => ran++);
      clock.after(5, () => second.cancel());
      first.cancel();
      first.cancel();
      await pass(25);
      assert.equal(ran, 0);
    });

    it("accepts a delay of months", async () => {
      const { clock, pass } = make();
      let ran = 0;
      const timer = clock.after(2 ** 33, () => ran++);
      await pass(10);
      assert.equal(ran, 0);
      timer.cancel();
    });

    it("repeats a periodic task until cancelled, also by itself", async () => {
      const { clock, pass } = make();
      const startMs = clock.monotonicMs();
      let ran = 0;
      const timer = clock.every(10, () => {
        ran++;
        assert.ok(clock.monotonicMs() >= startMs + ran * 10, "never early");
        if (ran === 3) timer.cancel();
      });
      await pass(100);
      assert.equal(ran, 3);
      assert.throws(() => clock.every(0, () => {}), RangeError);
    });

    it("runs endOfTurn tasks in order, after the present turn and before later timers", async () => {
      const { clock, pass } = make();
      const order: string[] = [];
      clock.endOfTurn(() => {
        order.push("one");
        clock.endOfTurn(() => order.push("three"));
      });
      clock.endOfTurn(() => order.push("two"));
      clock.after(20, () => order.push("timer"));
      order.push("here");
      await pass(40);
      assert.deepEqual(order, ["here", "one", "two", "three", "timer"]);
    });
  });
}
