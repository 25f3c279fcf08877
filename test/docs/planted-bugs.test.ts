/**
 * The page of planted bugs: each bug of a catalogue has a row, and each row is a bug. That of the
 * API server's cache is compared beside it, in packages/kube-storage.
 * `./dev mutants --only NAME --write` writes the row that is missing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PLANTED_BUGS } from "@quorate/sim";
import { MUTANTS } from "../mutants/list.ts";
import { plantedRows } from "../support/planted-rows.ts";

test("each bug that the simulator can be given has a row, and each row is one", () =>
  assert.deepEqual(plantedRows("In the simulator"), [...PLANTED_BUGS].sort()));

test("each mutant has a row, and each row is one", () =>
  assert.deepEqual(plantedRows("In all layers"), MUTANTS.map(({ name }) => name).sort()));
