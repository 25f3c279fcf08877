/**
 * The checkers find what is planted for them, each within 500 seeds; and what a seed needs to fail
 * can be found out.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { freshSeed } from "../../../test/support/fresh-seed.ts";
import { optionsOf } from "../src/base/options.ts";
import { HUNTED_BUGS, SOURCE_BUGS } from "../src/planted/catalogue.ts";
import { runPool, seedsFrom } from "../src/run/pool.ts";
import { shrinkSeed } from "../src/run/shrink.ts";
import { Totals } from "../src/run/totals.ts";
import { runSeed } from "../src/run-seed.ts";

const MAX_SEEDS = 500;
const SHORT = { set: { faultPhaseMs: 2000 } };

/** Each build looks for some of the bugs, by its commit; `./dev soak whole` looks for all. */
const TURNS = process.env["QUORATE_SOAK"] === "1" ? 1 : 16;
const turn = freshSeed() % TURNS;

for (const [place, [bug, noted]] of [...HUNTED_BUGS].entries()) {
  const skip =
    place % TURNS !== turn &&
    `not in this build's turn; QUORATE_FRESH_SEED=${place % TURNS} runs it`;
  test(`a planted bug is found: ${bug}`, { skip }, async (context) => {
    const totals = new Totals();
    const sim = SOURCE_BUGS[bug]?.sim;
    const found = () => totals.failed.size > 0;
    const changes = typeof sim === "object" ? { set: sim } : undefined;
    const first = seedsFrom(noted, 1, found, changes);
    const rest = seedsFrom(1, MAX_SEEDS, found, changes);
    await runPool({
      workers: 1,
      bug,
      next: () => first() ?? rest(),
      done: (summary) => totals.add(summary),
    });
    assert.ok(found(), `none of ${totals.seeds} seeds showed it`);
    const [[seed, violation]] = totals.failed;
    const note = seed === noted ? "" : `, to be noted in the catalogue in place of ${noted}`;
    context.diagnostic(`seed ${seed}${note}: ${violation.split("\n")[0].slice(0, 160)}`);
  });
}

test("a run that fails is made small, and still fails", async () => {
  const lines: string[] = [];
  const least = await shrinkSeed(213, "stale-read", SHORT, runSeed, (line) => lines.push(line));
  assert.ok(
    least !== undefined,
    "seed 213 does not show a stale read any more: take one that does",
  );
  const { violation, faults } = await runSeed(optionsOf(213, "stale-read", least), false);
  assert.match(violation ?? "", /HIST-1/);
  const before = await runSeed(optionsOf(213, "stale-read", SHORT), false);
  assert.ok(Object.keys(faults).length < Object.keys(before.faults).length, lines.join("\n"));
  assert.match(lines.at(-1) ?? "", /\.\/dev sim --seed 213 --bug stale-read --set /);
});
