/**
 * The page of planted bugs: each bug of the three catalogues has a row, and each row is a bug.
 * `npm run mutants -- --only NAME --write` writes the row that is missing.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PLANTED_BUGS } from "@quorate/sim";
import { PLANTED_BUGS as CACHER_BUGS } from "../../packages/kube-storage/test/cacher/history/planted.ts";
import { MUTANTS } from "../mutants/list.ts";

const page = readFileSync(
  join(import.meta.dirname, "../../docs/correctness/planted-bugs.md"),
  "utf8",
);

/** The first cells of the tables below a title, without what a bracket explains. */
function rowsBelow(title: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? "";
  return [...section.matchAll(/^\| ([^|]+?)(?: \([^|]*\))? \|/gm)]
    .map((row) => row[1]!)
    .filter((name) => !["planted bug", "bug", "option"].includes(name) && !name.startsWith("`"));
}

const catalogues: readonly [string, readonly string[]][] = [
  ["In the simulator", PLANTED_BUGS],
  ["In the API server's cache", Object.keys(CACHER_BUGS)],
  ["In all layers", MUTANTS.map(({ name }) => name)],
];

for (const [title, names] of catalogues)
  test(`${title}: each bug has a row, and each row is a bug`, () => {
    assert.ok(names.length > 10);
    assert.deepEqual(rowsBelow(title).sort(), [...names].sort());
  });
