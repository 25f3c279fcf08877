/** Random clusters of Raft machines; `./dev sim raft --runs 5000` runs more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SOURCE_BUGS } from "../src/planted/catalogue.ts";
import { editOf } from "../src/planted/source-edit.ts";
import { runOrExplain, searchClusters } from "../src/raft/run-seed.ts";

const SEEDS = 80;
/** Beside the noted seed; a change of Raft changes what a seed does. */
const MAX_SEEDS = 200;

test(`seeds 1 to ${SEEDS}: safe while everything fails, and at work again once healed`, (context) => {
  const totals = new Map<string, number>();
  for (let seed = 1; seed <= SEEDS; seed++)
    for (const [name, value] of Object.entries(runOrExplain(seed)))
      totals.set(name, (totals.get(name) ?? 0) + value);
  context.diagnostic(JSON.stringify(Object.fromEntries(totals)));
  // A run in which nothing happens shows nothing.
  for (const [name, value] of totals)
    assert.ok(2 * value >= SEEDS, `only ${value} ${name} in ${SEEDS} runs`);
});

for (const [name, bug] of Object.entries(SOURCE_BUGS)) {
  const { raftSeed } = bug;
  if (raftSeed === undefined) continue;
  test(`a planted bug is found: ${name}`, async (context) => {
    const edit = editOf(bug);
    const found =
      (await searchClusters({ edit, first: raftSeed, count: 1 })) ??
      (await searchClusters({ edit, first: 1, count: MAX_SEEDS }));
    assert.ok(found !== undefined, `neither seed ${raftSeed} nor ${MAX_SEEDS} others show it`);
    const note = found.seed === raftSeed ? "" : `, to be noted in place of ${raftSeed}`;
    context.diagnostic(`seed ${found.seed}${note}: ${found.problem.slice(0, 160)}`);
  });
}
