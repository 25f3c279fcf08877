/**
 * The page of planted bugs: each bug of a catalogue has a row, and each row is a bug. That of the
 * API server's cache is compared beside it, in packages/kube-storage.
 * `./dev mutants --only NAME --write` writes the row that is missing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HUNTED_BUGS } from "@quorate/sim";
import { REMOVED } from "../../scripts/contributed.ts";
import { MUTANTS } from "../mutants/list.ts";
import { plantedRows } from "../support/planted-rows.ts";

test("each bug that every build looks for has a row with its seed, and each row is one", () => {
  const rows = [...plantedRows("In the simulator")].map(([name, seed]) => [name, Number(seed)]);
  assert.deepEqual(rows.sort(), [...HUNTED_BUGS].sort());
});

test("each mutant has a row, and each row is one", () => {
  const rows = [...plantedRows("In all layers").keys()].sort();
  const names = MUTANTS.map(({ name }) => name).sort();
  // Rows do not say of which package they are.
  if (REMOVED.length > 0)
    assert.deepEqual(
      names.filter((name) => !rows.includes(name)),
      [],
    );
  else assert.deepEqual(rows, names);
});
