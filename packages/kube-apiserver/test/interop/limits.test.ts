/** LimitRanges fill in and refuse what they do with kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { keptAnswers, onOurs } from "./comparison.ts";
import { play } from "./limits/play.ts";

test("LimitRanges have kube-apiserver's answers", async () => {
  const kept = keptAnswers(join(import.meta.dirname, "limits"));
  assert.ok(kept.length > 60);
  const ours = await onOurs()(play);
  assert.deepEqual(ours, kept);
});
