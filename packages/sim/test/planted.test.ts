/** The checkers find what is planted for them, each within 500 seeds; and what a seed needs to fail can be found out. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Changes,
  misplaced,
  optionsOf,
  PLANTED_BUGS,
  type PlantedBug,
  runPool,
  runSeed,
  SOURCE_BUGS,
  seedsFrom,
  shrinkSeed,
  Totals,
} from "../index.ts";

const MAX_SEEDS = 500;
const SHORT = { set: { faultPhaseMs: 2000 } };

/** Long waits of members that have little to do cost less where they seldom have to tell each other so. */
const SABOTAGE = { sabotageEveryMs: 600, members: 3, faultPhaseMs: 3000, heartbeatMs: 100, electionMs: 1000, clients: 3, thinkMs: 60 };
const MEMBERSHIP = { membershipEveryMs: 500, faultPhaseMs: 3000 };
/** Entries take many slices, and members crash, write their stores and are read between them. */
const SLICES = { applySteps: 1, keys: 12, deletes: 6, puts: 10, batchIntervalMs: 1, quotaBytes: 0, faultPhaseMs: 4000 };
/** Ranges are read in many slices, while their keys are written and deleted. */
const READS = { readSteps: 1, keys: 12, reads: 10, puts: 10, deletes: 6, turnMs: 2, faultPhaseMs: 4000 };
/** Where a bug shows in few of the runs that seeds draw: those in which it can, so that this does not take all day. */
const FORCED: Partial<Record<PlantedBug, Changes["set"]>> = {
  "difference-unnoticed": SABOTAGE,
  "names-another-member": SABOTAGE,
  // Half a second, in which somebody has to read what was altered.
  "serves-while-named": {
    ...{ ...SABOTAGE, sabotageEveryMs: 400, faultPhaseMs: 4000, corruptCheckMs: 300, faultEveryMs: 100_000, selfHeal: true },
    ...{ keys: 1, reads: 20, puts: 1, deletes: 0, txns: 0, compactions: 0, serializableShare: 0.5, clients: 8, thinkMs: 50 },
    ...{ latencyMs: 1, jitterMs: 1 },
  },
  "heals-by-word-alone": { ...SABOTAGE, selfHeal: true },
  "snapshot-misses-a-record": { archiveEveryMs: 500 },
  "restore-forgets-leases": { archiveEveryMs: 500, leaseClients: 2 },
  "restore-not-synced": { archiveEveryMs: 500, restores: true },
  "index-before-its-entry": SLICES,
  "half-an-entry-flushed": SLICES,
  "half-an-entry-read": { ...SLICES, reads: 10, turnMs: 2 },
  "read-not-pinned": READS,
  "compaction-ignores-reads": { ...READS, compactions: 10 },
  "update-not-followed": { ...MEMBERSHIP, moves: true },
  "learner-limit-ignored": { ...MEMBERSHIP, maxLearners: 1, replaceEveryMs: 500, maxMembers: 7 },
  "learner-never-asks": { ...MEMBERSHIP, autoPromote: true },
  "survivor-drops-its-tail": { losesMajority: true, faultPhaseMs: 3000 },
};

for (const [name, bug] of Object.entries(SOURCE_BUGS)) {
  test(`the place of a bug in the source is there, once: ${name}`, () => assert.equal(misplaced(bug), undefined));
}

for (const bug of PLANTED_BUGS) {
  test(`a planted bug is found: ${bug}`, async (context) => {
    const totals = new Totals();
    const forced = FORCED[bug];
    const next = seedsFrom(1, MAX_SEEDS, () => totals.failed.size > 0, forced === undefined ? undefined : { set: forced });
    await runPool({ workers: 1, bug, next, done: (summary) => totals.add(summary) });
    assert.ok(totals.failed.size > 0, `none of ${totals.seeds} seeds showed it`);
    const [[seed, violation]] = totals.failed;
    context.diagnostic(`seed ${seed}: ${violation.split("\n")[0].slice(0, 160)}`);
  });
}

test("a run that fails is made small, and still fails", async () => {
  const lines: string[] = [];
  const least = await shrinkSeed(1, "stale-read", SHORT, runSeed, (line) => lines.push(line));
  assert.ok(least !== undefined, "seed 1 does not show a stale read any more: take one that does");
  const { violation, faults } = await runSeed(optionsOf(1, "stale-read", least), false);
  assert.match(violation ?? "", /HIST-1/);
  const before = await runSeed(optionsOf(1, "stale-read", SHORT), false);
  assert.ok(Object.keys(faults).length < Object.keys(before.faults).length, lines.join("\n"));
  assert.match(lines.at(-1) ?? "", /npm run sim -- --seed 1 --bug stale-read --set /);
});
