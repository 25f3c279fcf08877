/** The page of work before identity is known: its bounds are those of the code. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/operate/security/before-identity.md"), "utf8");
const rows = [...page.matchAll(/^\| [^|]+ \| (packages\/[^|]+) \| (\w+) \| (\d+) \|$/gm)];

/** The product or shift of whole numbers that a constant, or a field of a table, is set to. */
function boundOf(source: string, name: string): number | undefined {
  const text = new RegExp(`\\b${name}(?:: number)?(?: =|:) (\\d[\\w *<]*)[;,]`).exec(source)?.[1];
  const [left = "", shift] = text?.split("<<") ?? [];
  const product = left
    .split("*")
    .map((part) => Number(part.trim().replaceAll("_", "").replace("KIB", "1024")))
    .reduce((a, b) => a * b, 1);
  return text === undefined ? undefined : product * 2 ** Number(shift ?? 0);
}

test("every bound of work before identity has the value of the code", () => {
  assert.ok(rows.length >= 9, `${rows.length} rows`);
  for (const [, file, name, value] of rows) {
    const source = readFileSync(join(root, file), "utf8");
    assert.equal(boundOf(source, name), Number(value), `${file} ${name}`);
  }
});
