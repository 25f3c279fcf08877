/**
 * What reads a simulated log: it stops, no line is lost unannounced, and runs stay as they are.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { optionsOf } from "../src/base/options.ts";
import { SimLog } from "../src/log-reader.ts";
import { runSeed } from "../src/run-seed.ts";

test("lines are dropped while it stops, and each gap is announced", () => {
  let dropped = 0;
  for (let seed = 1n; seed <= 20n; seed++) {
    let nowMs = 0;
    const random = new SeededRandom(seed);
    const log = new SimLog(
      random,
      () => nowMs,
      (error) => {
        throw error;
      },
    );
    for (let i = 0; i < 2000; i++) {
      nowMs += random.below(40);
      log.logger.info("a line of a member");
    }
    dropped += log.dropped;
  }
  assert.ok(dropped > 1000, `${dropped} lines`);
});

test("a run whose readers stop goes as one whose readers do not", async () => {
  for (const seed of [2, 3]) {
    const set = { faultPhaseMs: 1000 };
    const [one, other] = await Promise.all(
      [true, false].map((logStalls) =>
        runSeed(optionsOf(seed, undefined, { set: { ...set, logStalls } }), false),
      ),
    );
    assert.deepEqual([one.violation, other.violation], [undefined, undefined]);
    assert.equal(one.hash, other.hash);
  }
});
