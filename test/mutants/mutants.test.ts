/**
 * Each bug of the list can still be planted. Whether they are caught is for `./dev mutants`,
 * which takes an hour or more.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { edited } from "@quorate/host/testing";
import { changesOf } from "./changes.ts";
import { MUTANTS } from "./list.ts";
import { problemsOf } from "./quick.ts";
import { isCaught, type Outcome, readResults, writeResults } from "./results.ts";
import { mergeTable } from "./table.ts";

test("every mutant changes one place of the source, and reads as TypeScript", () => {
  assert.ok(MUTANTS.length >= 60, `${MUTANTS.length} mutants`);
  assert.deepEqual(problemsOf(MUTANTS), []);
});

test("a mutant whose place is gone, or that does not read, is reported", () => {
  const [one] = MUTANTS;
  const [gone] = problemsOf([{ ...one, find: "nothing.of.the.kind" }]);
  assert.match(gone ?? "", /has 0 places of the shape: nothing.of.the.kind/);
  const [unreadable] = problemsOf([{ ...one, put: "if (" }]);
  assert.match(unreadable ?? "", /Unexpected token/);
  assert.match(problemsOf([one, one])[0] ?? "", /two of this name/);
});

test("a machine changes conditions, operators and statements, each at a place of its own, and no text", () => {
  const source = `class A {
  #count = 0;
  readonly #all: string[] = [];
  // if (a < b) c();
  f(a: number, b: Map<string, number>): string {
    if (a < b.size && a > 0) this.#count += 1;
    this.g("a < b");
    this.g("a < b");
    this.logger.info("a", { a });
    return a === 1 ? "if (x)" : \`\${a} + 1\`;
  }
}
`;
  const changes = changesOf(source);
  assert.deepEqual(
    changes.map(({ line, what }) => `${line} ${what.split(" in ")[0]}`),
    [
      "6 a < b.size && a > 0 => !(a < b.size && a > 0)",
      "6 < => <=",
      "6 && => ||",
      "6 > => >=",
      "6 += => -=",
      '7 this.g("a < b"); => ;',
      '8 this.g("a < b"); => ;',
      "10 === => !==",
    ],
  );
  assert.equal(new Set(changes.map((one) => edited(source, one))).size, changes.length);
});

test("the same change twice in a line has two names", () => {
  const changes = changesOf("const isIn = (a: number, b: number) => a < 1 || b < 1;\n");
  const names = changes.map(({ what }) => what.replace(/ in .*;/, ""));
  assert.deepEqual(names, ["< => <=", "|| => &&", "< => <= (2)"]);
});

test("rows are replaced or added in the table, and others stay, as does a layer that was not run", () => {
  const page = "a\n<!-- mutants: written by ./dev mutants --write -->\n<!-- mutants: end -->\nb\n";
  const first = mergeTable(
    page,
    new Map<string, Outcome>([
      ["x", { tests: { layer: "tests", by: "t", seeds: undefined, seconds: 2 } }],
      ["y", { tests: null, search: null }],
    ]),
  );
  assert.match(first, /\n\| x \| 2 s: t \| not run \|\n\| y \| - \| - \|\n/);
  const second = mergeTable(
    first,
    new Map<string, Outcome>([
      ["x", { search: null }],
      ["y", { search: { layer: "simulator", by: "LOG-1 a|b", seeds: 7, seconds: 3.4 } }],
      [
        "z",
        { tests: null, search: { layer: "random clusters", by: "LOG-2", seeds: 9, seconds: 1 } },
      ],
    ]),
  );
  const rows = [
    "| x | 2 s: t | - |",
    "| y | - | seed 7, 3 s: LOG-1 a/b |",
    "| z | - | random clusters: seed 9, 1 s: LOG-2 |",
  ];
  assert.ok(second.startsWith("a\n") && second.endsWith("\nb\n"));
  assert.deepEqual(second.match(/^\| [xyz].*/gm), rows);
  assert.throws(() => mergeTable("", new Map()), /has no lines/);
});

test("results are kept in a file, and a file that holds something else is refused", (context) => {
  const directory = mkdtempSync(join(tmpdir(), "quorate-mutants-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "results.json");
  assert.equal(readResults(path).size, 0);
  const results = new Map<string, Outcome>([
    ["x", { tests: null }],
    ["y", { tests: null, search: { layer: "simulator", by: "LOG-1", seeds: 7, seconds: 3 } }],
  ]);
  writeResults(path, results);
  assert.deepEqual(readResults(path), results);
  assert.deepEqual([...results.values()].map(isCaught), [false, true]);
  for (const text of ["", "[]", '{"x":1}']) {
    writeFileSync(path, text);
    assert.throws(() => readResults(path), /does not hold results of mutants/);
  }
});
