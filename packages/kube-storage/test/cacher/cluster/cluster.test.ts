/**
 * The storage layer over simulated members: nothing is lost, stale or repeated under faults.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CACHER_BUGS } from "../../mutants.ts";
import { hunt } from "../history/hunt.ts";
import { runInCluster } from "./run-in-cluster.ts";

/** `./dev sim cacher --below cluster` runs more. */
const SEEDS = [1, 9, 28];

test("clients of two API servers see no gap, repetition, stale read or lost update", async () => {
  const faults = new Set<string>();
  for (const seed of SEEDS) {
    const { result, counts } = await runInCluster(seed);
    const command = `./dev sim cacher --below cluster --seed ${seed} --runs 1`;
    assert.equal(result.violation, undefined, command);
    for (const what of ["MODIFIED", "BOOKMARK", "consistent list", "exact list", "increments"])
      assert.ok((counts.get(what) ?? 0) > 0, `seed ${seed} has no ${what}`);
    for (const fault of Object.keys(result.faults)) faults.add(fault);
  }
  for (const fault of ["kill", "oneWay"]) assert.ok(faults.has(fault), `no ${fault}`);
});

test("a seed has one run", async () => {
  const [first, second] = [await runInCluster(6), await runInCluster(6)];
  assert.equal(first.result.hash, second.result.hash);
  assert.deepEqual(first.counts, second.counts);
});

for (const bug of ["a lost update in guaranteedUpdate", "a stale consistent read"])
  test(`a planted bug is found over simulated members: ${bug}`, async (context) => {
    const caught = await hunt(CACHER_BUGS[bug], "cluster");
    assert.notEqual(caught, undefined, "no seed shows it");
    assert.match(caught!.problem, /API-1/);
    context.diagnostic(`seed ${caught!.seed}: ${caught!.problem.slice(0, 200)}`);
  });
