import assert from "node:assert/strict";
import { test } from "node:test";
import { Pauses, SLICE_MS, TURN_MS, TurnWork } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";

/** The manual clock, on which work takes time. */
class WorkingClock extends ManualClock {
  #workedMs = 0;

  override monotonicMs(): number {
    return super.monotonicMs() + this.#workedMs;
  }

  work(ms: number): void {
    this.#workedMs += ms;
  }
}

/** Runs one turn and returns how long its work took. */
function turnOf(clock: WorkingClock): number {
  const startMs = clock.monotonicMs();
  clock.endOneTurn();
  return clock.monotonicMs() - startMs;
}

/** Work of `steps` steps of `stepMs` each. */
function workOf(clock: WorkingClock, steps: number, stepMs: number) {
  const work = { left: steps, plan: () => turnWork.plan() };
  const turnWork = new TurnWork(clock.turns, {
    step: () => {
      clock.work(stepMs);
      return --work.left > 0;
    },
  });
  return work;
}

test("work runs for its share of each turn until it is done, and is planned once", () => {
  const clock = new WorkingClock();
  const work = workOf(clock, 20, 0.5);
  work.plan();
  work.plan();
  assert.equal(work.left, 20);
  assert.equal(turnOf(clock), SLICE_MS);
  assert.equal(work.left, 12);
  assert.equal(turnOf(clock), SLICE_MS);
  assert.equal(turnOf(clock), 2);
  assert.equal(work.left, 0);
  assert.equal(turnOf(clock), 0);
});

test("many kinds of work share a turn: none is left behind, and the turn stays short", () => {
  const clock = new WorkingClock();
  const works = Array.from({ length: 8 }, () => workOf(clock, 1000, 0.25));
  for (const work of works) work.plan();
  // The first turn cuts off whoever comes late, at one step each; from then on all get a part.
  const firstMs = turnOf(clock);
  assert.ok(firstMs <= TURN_MS + 6 * 0.25, `${firstMs} ms`);
  const before = works.map(({ left }) => left);
  for (let i = 0; i < 10; i++) {
    const tookMs = turnOf(clock);
    assert.ok(tookMs <= TURN_MS + 0.25, `${tookMs} ms`);
  }
  const made = works.map(({ left }, i) => before[i]! - left);
  assert.ok(Math.max(...made) - Math.min(...made) <= 10, `steps made: ${made}`);
  for (const work of works) work.left = 1;
  turnOf(clock);
  // Alone again, work has its whole share after a turn.
  const alone = workOf(clock, 1000, 0.5);
  alone.plan();
  turnOf(clock);
  assert.equal(turnOf(clock), SLICE_MS);
});

test("a call pauses when its slice is over, and goes on in the next turn", async () => {
  const clock = new WorkingClock();
  const pauses = new Pauses(clock.turns, 3);
  clock.work(2.9);
  assert.equal(pauses.next(), undefined);
  clock.work(0.1);
  let hasResumed = false;
  const pause = pauses.next()?.then(() => {
    hasResumed = true;
  });
  assert.notEqual(pause, undefined);
  await Promise.resolve();
  assert.equal(hasResumed, false);
  clock.endOneTurn();
  await pause;
  assert.equal(hasResumed, true);
  assert.equal(pauses.next(), undefined);
});

test("where the clock stands still, a slice ends after its steps, and no turn is added", () => {
  const clock = new ManualClock();
  let steps = 0;
  const work = new TurnWork(clock.turns, { maxSteps: 3, step: () => ++steps < 7 });
  work.plan();
  const made = [];
  while (clock.endOneTurn() > 0) made.push(steps);
  assert.deepEqual(made, [3, 6, 7]);
});

test("work whose step throws can be planned again", () => {
  const clock = new ManualClock();
  let calls = 0;
  const work = new TurnWork(clock.turns, {
    step: () => {
      if (++calls === 1) throw new Error("broken");
      return false;
    },
  });
  work.plan();
  assert.throws(() => clock.endOneTurn(), /broken/);
  work.plan();
  clock.endOneTurn();
  assert.equal(calls, 2);
});
