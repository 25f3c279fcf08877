import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@quorate/host";
import { PumpQueue } from "../../src/cacher/pump-queue.ts";

/** A clock on which each look takes a millisecond. */
function tickingClock() {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const clock = {
    monotonicMs: () => nowMs++,
    endOfTurn: (task: () => void) => void turns.push(task),
  };
  return {
    turns: new Turns(clock),
    runTurn: () => {
      for (const task of turns.splice(0)) task();
    },
  };
}

test("those that catch up take turns, a few milliseconds in each turn of the event loop", () => {
  const clock = tickingClock();
  const queue = new PumpQueue(clock);
  const order: string[] = [];
  const left = new Map([
    ["a", 4],
    ["b", 2],
    ["c", 5],
  ]);
  for (const name of left.keys())
    queue.add({
      pump: () => {
        order.push(name);
        left.set(name, left.get(name)! - 1);
        return left.get(name)! > 0;
      },
    });
  assert.deepEqual(order, []);
  clock.runTurn();
  assert.equal(order.join(""), "abca");
  clock.runTurn();
  assert.equal(order.join(""), "abcabcac");
  clock.runTurn();
  clock.runTurn();
  assert.equal(order.join(""), "abcabcacacc");
  assert.deepEqual([...left.values()], [0, 0, 0]);
});

test("one that is removed is not pumped, and one that is added twice waits once", () => {
  const clock = tickingClock();
  const queue = new PumpQueue(clock);
  let pumped = 0;
  const one = { pump: () => ++pumped > 100 };
  queue.add(one);
  queue.add(one);
  clock.runTurn();
  clock.runTurn();
  assert.equal(pumped, 1);
  queue.add(one);
  queue.remove(one);
  clock.runTurn();
  assert.equal(pumped, 1);
});
