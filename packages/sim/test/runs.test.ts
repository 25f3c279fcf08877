/**
 * Some hundred seeds on every build, on two processors, and some that no build had before; and that
 * a seed yields the same run again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { freshSeed } from "../../../test/support/fresh-seed.ts";
import { optionsOf } from "../src/base/options.ts";
import { commandOf } from "../src/run/changes.ts";
import { runPool, seedsFrom } from "../src/run/pool.ts";
import { Totals } from "../src/run/totals.ts";
import { runSeed } from "../src/run-seed.ts";

/** Runs of this many seeds are part of every build; the command runs as many as one likes. */
const SEEDS = 96;

/** All but every eighth are short, those of leases too: kinds of runs matter more than length. */
const SHORT = { set: { faultPhaseMs: 2000 } };

test(`${SEEDS} seeds keep all promises`, async () => {
  const totals = new Totals();
  const seeds = seedsFrom(1, SEEDS);
  const next = () => {
    const order = seeds();
    return order === undefined || order.seed % 8 === 0 ? order : { ...order, changes: SHORT };
  };
  await runPool({ workers: 2, next, done: (summary) => totals.add(summary) });
  assert.deepEqual([...totals.failed], []);
  assert.equal(totals.seeds, SEEDS);
  assert.equal(totals.undecided, 0, "histories that could not be decided");
  const { answered, elections, snapshots } = totals.sums;
  const text = totals.text();
  assert.ok(
    answered > 50 * SEEDS && elections > SEEDS && snapshots > 0 && totals.faults.size > 15,
    `the runs were too tame: ${text}`,
  );
});

/**
 * So many that no build had before, from where the commit's hash says; none is begun after this
 * time, whatever the machine.
 */
const FRESH_SEEDS = 40;
const FRESH_MS = 20_000;

test("seeds that no build had before keep all promises", async (context) => {
  const first = freshSeed();
  const startMs = performance.now();
  const totals = new Totals();
  // At least a few, however busy the machine is.
  const isOver = () => totals.seeds >= 4 && performance.now() - startMs > FRESH_MS;
  await runPool({
    workers: 2,
    next: seedsFrom(first, FRESH_SEEDS, isOver, SHORT),
    done: (summary) => totals.add(summary),
  });
  context.diagnostic(`seeds ${first}..${first + totals.seeds - 1}, of the commit's hash`);
  const commands = [...totals.failed.keys()].map(
    (seed) => `${commandOf(seed, undefined, SHORT)} --story 60`,
  );
  assert.deepEqual([...totals.failed], [], `to run them again: ${commands.join("; ")}`);
  assert.equal(totals.undecided, 0, "histories that could not be decided");
});

/** Clusters with members of etcd: no seed draws them by itself. */
const MIXED_SEEDS = 10;

for (const etcdMembers of [1, 2]) {
  test(`${MIXED_SEEDS / 2} clusters with ${etcdMembers} members of etcd keep all promises`, async () => {
    const changes = { set: { ...SHORT.set, etcdMembers, members: 3 } };
    const totals = new Totals();
    const first = freshSeed() + etcdMembers * MIXED_SEEDS;
    const next = seedsFrom(first, MIXED_SEEDS / 2, undefined, changes);
    await runPool({ workers: 2, next, done: (summary) => totals.add(summary) });
    const commands = [...totals.failed.keys()].map((seed) => commandOf(seed, undefined, changes));
    assert.deepEqual([...totals.failed], [], `to run them again: ${commands.join("; ")}`);
    assert.equal(totals.undecided, 0, "histories that could not be decided");
  });
}

/**
 * Runs that broke a promise once, where no smaller test shows it; docs/evidence/correctness.md has
 * their stories.
 */
const ONCE_BROKEN = [
  { seed: 262, changes: { set: { faultPhaseMs: 6000 } } },
  { seed: 400001117, changes: SHORT },
  { seed: 421002704, changes: SHORT },
  { seed: 910000096, changes: SHORT },
  { seed: 433001660, changes: {} },
];

for (const { seed, changes } of ONCE_BROKEN) {
  test(`seed ${seed}, which broke a promise once, keeps all`, async () => {
    assert.equal((await runSeed(optionsOf(seed, undefined, changes), false)).violation, undefined);
  });
}

test("a seed yields the same run to the byte", async () => {
  const hashes = new Set<unknown>();
  for (const seed of [28, 37]) {
    const first = await runSeed(optionsOf(seed));
    const second = await runSeed(optionsOf(seed));
    hashes.add(first.hash);
    assert.equal(first.hash, second.hash);
    assert.equal(first.events, second.events);
    assert.equal(first.story.last(50), second.story.last(50));
  }
  assert.equal(hashes.size, 2);
});
