/** `npm create quorate`: what it copies, and what it refuses. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createProgram } from "../index.ts";

const EXAMPLES = join(import.meta.dirname, "../../../examples");
const scratch = mkdtempSync(join(tmpdir(), "quorate-create-test-"));
after(() => rmSync(scratch, { recursive: true }));

function run(...args: string[]): { code: number; lines: string } {
  const lines: string[] = [];
  const line = (text: string): void => void lines.push(text);
  return {
    code: createProgram(args, EXAMPLES, { out: line, error: line }),
    lines: lines.join("\n"),
  };
}

test("a directory gets the template, or an example, with its own name", () => {
  for (const [name, example, file] of [
    ["My App", undefined, "visits.ts"],
    ["cron", "distributed-cron", "cron.ts"],
  ] as const) {
    const directory = join(scratch, name);
    assert.equal(run(directory, ...(example === undefined ? [] : [example])).code, 0);
    assert.ok(readdirSync(directory).includes(file));
    const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
    assert.equal(manifest.name, name === "cron" ? "cron" : "my-app");
    assert.equal(manifest.scripts.test, "node --test");
    assert.deepEqual(run(directory), { code: 1, lines: `${directory} is not empty` });
  }
});

test("without a directory, or with another example, it says what there is", () => {
  for (const args of [[], ["--help"], ["a", "b", "c"]]) {
    const { code, lines } = run(...args);
    assert.equal(code, 2);
    assert.match(lines, /^usage: .*\nexamples: .*\bjob-queue\b.*\btemplate\b/);
  }
  assert.match(run(join(scratch, "x"), "http").lines, /there is no example http; there are /);
});
