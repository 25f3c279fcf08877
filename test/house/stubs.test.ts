/** Stubs that are given a callback use it, and the rule finds one that does not. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkStubs } from "./stubs.ts";
import { formatFindings, repositoryRoot } from "./tree.ts";

test("each stub in a test uses its callback, or was looked at", () => {
  const findings = checkStubs(join(repositoryRoot, "tsconfig.json"));
  assert.equal(findings.length, 0, `\n${formatFindings(findings)}`);
});

test("a stub that leaves its callback out is found, and those that use or refuse it are not", (context) => {
  const root = mkdtempSync(join(tmpdir(), "quorate-stubs-"));
  context.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "test"));
  writeFileSync(join(root, "tsconfig.json"), JSON.stringify({ include: ["test"] }));
  writeFileSync(
    join(root, "test/a.ts"),
    `export interface Pin { run(at: number, work: () => void): void }
export const omits: Pin = { run: () => {} };
export const ignores: Pin = { run: (at, work) => void at };
export const method: Pin = { run(at) { void at; } };
export class Fake implements Pin { run(at: number) { void at; } }
export const uses: Pin = { run: (at, work) => work() };
export const refuses: Pin = { run: () => { throw new Error("not pinned"); } };
`,
  );
  const found = checkStubs(join(root, "tsconfig.json"), root);
  assert.deepEqual(
    found.map(({ where, what }) => `${where} ${what}`),
    [2, 3, 4, 5].map((line) => `test/a.ts:${line} a stub takes work, and never uses it`),
  );
});
