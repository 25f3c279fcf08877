/** A few dozen seeds on every build; that a seed gives the same run again; and that the checkers find bugs that were planted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { optionsOf, PLANTED_BUGS, runSeed } from "../index.ts";

/** Runs of this many seeds are part of every build; the command runs as many as one likes. */
const SEEDS = 60;

test(`${SEEDS} seeds keep all promises`, async () => {
  let answered = 0;
  let elections = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const result = await runSeed(optionsOf(seed));
    assert.equal(result.violation, undefined, `seed ${seed}: ${result.violation}`);
    assert.deepEqual(result.verdict?.undecided, [], `seed ${seed}: the search gave up`);
    answered += result.answered;
    elections += result.elections;
  }
  assert.ok(answered > 1000 && elections > 2 * SEEDS, "the runs were too tame to show anything");
});

test("a seed gives the same run to the byte", async () => {
  for (const seed of [28, 37]) {
    const first = await runSeed(optionsOf(seed));
    const second = await runSeed(optionsOf(seed));
    assert.equal(first.hash, second.hash);
    assert.equal(first.events, second.events);
    assert.equal(first.story.last(50), second.story.last(50));
  }
  assert.notEqual((await runSeed(optionsOf(28))).hash, (await runSeed(optionsOf(37))).hash);
});

for (const bug of PLANTED_BUGS) {
  test(`a planted bug is found: ${bug}`, async () => {
    for (let seed = 1; seed <= 500; seed++) if ((await runSeed(optionsOf(seed, bug))).violation !== undefined) return;
    assert.fail("no seed showed it");
  });
}
