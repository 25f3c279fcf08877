/** The page of advisories: each names a test that exists, by its file and its name. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/operate/security/advisories.md"), "utf8");
const rows = [
  ...page.matchAll(/^\| (?<advisory>[^|]+) \| [^|]+ \| (?<file>[^|:]+): (?<name>.+) \|$/gm),
];

test("every advisory has a test", () => {
  const all = page.split("\n").filter((line) => /^\| (?!advisory)[^-]/.test(line));
  assert.equal(rows.length, all.length);
  assert.ok(rows.length >= 20, `${rows.length} advisories`);
  for (const { groups } of rows) {
    const { advisory, file, name } = groups!;
    const path = join(root, `${file}.test.ts`);
    assert.ok(existsSync(path), `${advisory}: ${file}`);
    const tests = readFileSync(path, "utf8").matchAll(/\b(?:test|it|describe)\(\s*"([^"]+)"/g);
    assert.ok(
      [...tests].some(({ 1: one }) => one === name),
      `${advisory}: no test of ${file} is called ${JSON.stringify(name)}`,
    );
  }
});
