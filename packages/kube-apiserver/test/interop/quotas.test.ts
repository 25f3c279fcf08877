/** ResourceQuotas refuse and count what they do with kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { keptAnswers, onOurs } from "./comparison.ts";
import { play } from "./quotas/play.ts";

test("ResourceQuotas have kube-apiserver's answers", async () => {
  const kept = keptAnswers(join(import.meta.dirname, "quotas"));
  assert.ok(kept.length > 200);
  const ours = await onOurs({ controllers: [] })(play);
  assert.deepEqual(ours, kept);
});
