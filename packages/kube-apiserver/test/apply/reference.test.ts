/** Replays what Kubernetes' own libraries made of random cases (./dev compare apply). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CASE_TYPES, caseOf, type Fixture } from "./support/cases.ts";
import { difference } from "./support/compare.ts";
import { evaluate } from "./support/evaluate.ts";

const FIXTURES: readonly Fixture[] = readFileSync(
  new URL("fixtures/reference.jsonl", import.meta.url),
  "utf8",
)
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Fixture);

for (const type of CASE_TYPES) {
  test(`${type}: the results are those of Kubernetes' libraries`, async () => {
    const cases = FIXTURES.filter((fixture) => fixture.type === type);
    assert.ok(cases.length >= 30);
    for (const { seed, result } of cases) {
      const ours = await evaluate(caseOf(type, seed));
      const what = difference(type, ours, result);
      if (what !== undefined) assert.deepEqual(ours, result, `seed ${seed}: ${what}`);
    }
  });
}
