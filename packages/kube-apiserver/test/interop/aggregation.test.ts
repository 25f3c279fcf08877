/** Other API servers are reached, and missed, as with kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { play, withOurs } from "./aggregation/play.ts";
import { keptAnswers } from "./comparison.ts";

test("Requests for other API servers have kube-apiserver's answers", async () => {
  const kept = keptAnswers(join(import.meta.dirname, "aggregation"));
  assert.ok(kept.length > 40);
  assert.deepEqual(await withOurs(play), kept);
});
