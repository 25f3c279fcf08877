/** When a heartbeat counts as late. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeartbeatGaps } from "../src/loop/loop.ts";

test("a heartbeat is late after twice the interval, for each member apart", () => {
  const gaps = new HeartbeatGaps(100);
  assert.equal(gaps.sent(1n, 1000), undefined, "the first has none before it");
  assert.equal(gaps.sent(2n, 1100), undefined);
  assert.equal(gaps.sent(1n, 1200), undefined, "exactly twice is not late");
  assert.equal(gaps.sent(1n, 1450), 50);
  assert.equal(gaps.sent(2n, 1450), 150);
  // A round of reads sends one between two ticks that are far apart.
  assert.equal(gaps.sent(1n, 1600), undefined);
  assert.equal(gaps.sent(1n, 1750), undefined);
});

test("what a former leader sent does not count", () => {
  const gaps = new HeartbeatGaps(100);
  gaps.sent(1n, 0);
  gaps.reset();
  assert.equal(gaps.sent(1n, 60_000), undefined);
});
