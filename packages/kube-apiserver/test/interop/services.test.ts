/** Services are given addresses and ports, and refused them, as with kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { keptAnswers, onOurs } from "./comparison.ts";
import { play } from "./services/play.ts";

test("Services have kube-apiserver's addresses and ports", async () => {
  const kept = keptAnswers(join(import.meta.dirname, "services"));
  assert.ok(kept.length > 100);
  const ours = await onOurs({ controllers: [] })(play);
  assert.deepEqual(ours, kept);
});
