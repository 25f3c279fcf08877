/** The heap of deadlines against a set that is searched. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Deadlines, type Due } from "../src/lease/deadlines.ts";

test("the heap returns what is due in order, whatever was moved or taken out (seed 1)", () => {
  let state = 1;
  const below = (n: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const heap = new Deadlines<Due>();
  const model = new Set<Due>();
  const takeAll = () => {
    const dues = [...model].map(({ dueMs }) => dueMs).sort((a, b) => a - b);
    const taken: number[] = [];
    for (let first = heap.first(); first !== undefined; first = heap.first()) {
      taken.push(first.dueMs);
      heap.remove(first);
    }
    assert.deepEqual(taken, dues);
    model.clear();
  };
  for (let i = 0; i < 20_000; i++) {
    if (i % 200 === 0) takeAll();
    const some = [...model][below(Math.max(1, model.size))];
    const kind = below(4);
    if (kind < 2 && model.size < 40) {
      const item = { dueMs: below(50), place: -1 };
      heap.add(item);
      model.add(item);
    } else if (kind === 2 && some !== undefined) {
      const dueMs = below(50);
      heap.move(some, dueMs);
      assert.equal(some.dueMs, dueMs);
    } else if (some !== undefined) {
      heap.remove(some);
      heap.remove(some);
      model.delete(some);
    }
    assert.equal(heap.size, model.size);
    assert.equal(
      heap.first()?.dueMs ?? Number.POSITIVE_INFINITY,
      Math.min(Number.POSITIVE_INFINITY, ...[...model].map(({ dueMs }) => dueMs)),
    );
  }
});
