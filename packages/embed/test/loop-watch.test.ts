/** The watchdog of the event loop that a member shares with its program. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { watchLoop } from "../node/loop-watch.ts";
import { startMember } from "../node/start-member.ts";

test("a loop that was held for as long as it may is told, a shorter time is not", () => {
  let nowMs = 0;
  let look = (): void => {};
  const held: number[] = [];
  const clock = {
    monotonicMs: () => nowMs,
    every(periodMs: number, task: () => void) {
      assert.equal(periodMs, 25);
      look = task;
      return { cancel: () => {} };
    },
  };
  watchLoop(clock, 100, (heldMs) => held.push(heldMs));
  for (const afterMs of [25, 124, 125, 25, 1025]) {
    nowMs += afterMs;
    look();
  }
  assert.deepEqual(held, [100, 1000]);
});

test("a program that holds the loop of its member is warned, by an event and in the log", async () => {
  const warnings: object[] = [];
  const logger = {
    debug() {},
    info() {},
    warn(msg: string, fields?: object) {
      if (/held the event loop/.test(msg)) warnings.push({ ...fields });
    },
    error() {},
    child: () => logger,
  };
  const config = { "election-timeout": 400, "heartbeat-interval": 40 };
  await using member = await startMember({
    dataDir: ":memory:",
    config,
    logger,
    maxHeldShare: 0.5,
  });
  const told = once(member.events, "held");
  const until = performance.now() + 400;
  while (performance.now() < until);
  const [{ heldMs, electionTimeoutMs }] = await told;
  assert.ok(heldMs >= 200);
  assert.equal(electionTimeoutMs, 400);
  assert.ok(warnings.length > 0);
  await assert.rejects(startMember({ maxHeldShare: 0 }), TypeError);
});
