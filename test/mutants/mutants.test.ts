/** Each bug of the list can still be planted. Whether they are caught is for `npm run mutants`, which takes an hour or more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MUTANTS } from "./list.ts";
import { problemsOf } from "./quick.ts";
import { mergeTable } from "./table.ts";

test("every mutant changes one place of the source, and reads as TypeScript", () => {
  assert.ok(MUTANTS.length >= 60, `${MUTANTS.length} mutants`);
  assert.deepEqual(problemsOf(MUTANTS), []);
});

test("a mutant whose place is gone, or that does not read, is reported", () => {
  const [one] = MUTANTS;
  const [gone] = problemsOf([{ ...one!, before: "nothing of the kind" }]);
  assert.match(gone ?? "", /has 0 places that read: nothing of the kind/);
  const [unreadable] = problemsOf([{ ...one!, after: "if (" }]);
  assert.match(unreadable ?? "", /does not read as TypeScript/);
  assert.match(problemsOf([one!, one!])[0] ?? "", /two of this name/);
});

test("rows are replaced or added in the table, and others stay", () => {
  const page = "a\n<!-- mutants: written by npm run mutants -- --write -->\n<!-- mutants: end -->\nb\n";
  const first = mergeTable(
    page,
    new Map([
      ["x", [{ layer: "tests", by: "t", seeds: undefined, seconds: 2 }]],
      ["y", []],
    ]),
  );
  const second = mergeTable(first, new Map([["y", [{ layer: "simulator", by: "LOG-1 a|b", seeds: 7, seconds: 3.4 }]]]));
  assert.match(second, /^a\n[\s\S]*\| x \| 2 s: t \| - \|\n\| y \| - \| seed 7, 3 s: LOG-1 a\/b \|\n[\s\S]*\nb\n$/);
  assert.throws(() => mergeTable("", new Map()), /has no lines/);
});
