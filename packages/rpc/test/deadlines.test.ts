import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import fc from "fast-check";
import { DEADLINE_SLOT_MS, DeadlineQueue } from "../src/deadlines.ts";

describe("deadlines", () => {
  it("are noticed never early, at most one slot late, once, and not after they were removed", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            ms: fc.integer({ min: 0, max: 5000 }),
            removeAfterMs: fc.option(fc.integer({ min: 0, max: 5000 })),
          }),
          {
            maxLength: 50,
          },
        ),
        (items) => {
          const clock = new ManualClock();
          const queue = new DeadlineQueue(clock);
          const seen = new Map<number, number>();
          items.forEach(({ ms, removeAfterMs }, i) => {
            const item = {
              deadlineMs: ms,
              expired() {
                assert.ok(!seen.has(i));
                seen.set(i, clock.monotonicMs());
              },
            };
            queue.add(item);
            if (removeAfterMs !== null) clock.after(removeAfterMs, () => queue.remove(item));
          });
          clock.advance(6000);
          items.forEach(({ ms, removeAfterMs }, i) => {
            const at = seen.get(i);
            if (removeAfterMs === null)
              assert.ok(
                at !== undefined && at >= ms && at < ms + DEADLINE_SLOT_MS,
                `${ms} seen at ${at}`,
              );
            else if (removeAfterMs < ms) assert.equal(at, undefined);
          });
          assert.equal(clock.nextDueMs(), undefined);
        },
      ),
      { seed: 3, numRuns: 300 },
    );
  });

  it("leave no timer behind for a far slot that is empty again", () => {
    const clock = new ManualClock();
    const queue = new DeadlineQueue(clock);
    const item = { deadlineMs: 3_600_000, expired: () => assert.fail() };
    queue.add(item);
    queue.remove(item);
    assert.equal(clock.nextDueMs(), undefined);
  });

  it("may be added and removed while one of them is noticed", () => {
    const clock = new ManualClock();
    const queue = new DeadlineQueue(clock);
    const seen: string[] = [];
    const second = { deadlineMs: 10, expired: () => seen.push("second") };
    const late = { deadlineMs: 5, expired: () => seen.push("late") };
    queue.add({
      deadlineMs: 10,
      expired() {
        seen.push("first");
        queue.remove(second);
        queue.add(late);
      },
    });
    queue.add(second);
    clock.advance(30);
    assert.deepEqual(seen, ["first", "late"]);
  });
});
