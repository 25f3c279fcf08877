/**
 * Expressions over a schema, with the results of Kubernetes' own CEL environment: types, values,
 * texts of errors, costs at run time and as estimated (`./dev compare cel --write`).
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { difference, ours, type Result } from "./cel/compare.ts";
import { ownCases } from "./cel/expressions.ts";

const kept = readFileSync(new URL("cel/kubernetes-1.36.jsonl", import.meta.url), "utf8");
const results = kept
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Result);

test("each expression has a kept result", () => {
  assert.equal(results.length, ownCases().length);
});

for (const [i, one] of ownCases().entries())
  test(one.expr, () => {
    const mine = ours(one);
    const theirs = results[i]!;
    const what = difference(mine, theirs);
    assert.equal(what, undefined, `${JSON.stringify(mine)} is not ${JSON.stringify(theirs)}`);
  });

test("trim takes Unicode's white space, and no byte order mark (strings.TrimSpace of Go)", () => {
  const { value } = ours({ expr: "'\\u0085\\u00a0\\u2003\\ufeffa\\ufeff\\u2028\\t'.trim()" });
  assert.equal(value, ours({ expr: "'\\ufeffa\\ufeff'" }).value);
});
