/**
 * Random histories of the Cacher have no problem, and find the bugs that are planted for them.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsOf } from "../../../../../test/mutants/quick.ts";
import { plantedRows } from "../../../../../test/support/planted-rows.ts";
import { CACHER_BUGS } from "../../mutants.ts";
import { hunt } from "./hunt.ts";
import { runHistory } from "./run-history.ts";

/** `./dev sim cacher` runs more. */
const SEEDS = 6;

for (const [below, seeds] of [
  ["fake", SEEDS],
  ["etcd", 2],
] as const)
  test(`histories have no gap, repetition, stale read or lost update: ${below}`, async () => {
    for (let seed = 1; seed <= seeds; seed++) {
      const { problems, counts } = await runHistory(BigInt(seed), below);
      const command = `./dev sim cacher --below ${below} --seed ${seed} --runs 1`;
      assert.deepEqual(problems, [], command);
      for (const what of ["MODIFIED", "BOOKMARK", "consistent list", "exact list", "increments"])
        assert.ok((counts.get(what) ?? 0) > 0, `seed ${seed} has no ${what}`);
    }
  });

test("a seed has one history", async () => {
  const [first, second] = [await runHistory(7n), await runHistory(7n)];
  assert.deepEqual(first, second);
});

test("each planted bug has a row in the docs, and each row is one", () =>
  assert.deepEqual(
    [...plantedRows("In the API server's cache").keys()].sort(),
    Object.keys(CACHER_BUGS).sort(),
  ));

test("each planted bug has its place in the source", () => {
  const bugs = Object.entries(CACHER_BUGS).map(([name, bug]) => ({ ...bug, name }));
  assert.deepEqual(problemsOf(bugs), []);
});

for (const [name, bug] of Object.entries(CACHER_BUGS)) {
  if (bug.isHunted !== true) continue;
  test(`a planted bug is found: ${name}`, async (context) => {
    const caught = await hunt(bug);
    assert.notEqual(caught, undefined, "no seed shows it");
    context.diagnostic(`seed ${caught?.seed}: ${caught?.problem.slice(0, 200)}`);
  });
}
