/** Other API servers are reached, and missed, as with kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { keptAnswers, play, withOurs } from "./aggregation/play.ts";

test("Requests for other API servers have kube-apiserver's answers", async () => {
  const kept = keptAnswers();
  assert.ok(kept.length > 40);
  assert.deepEqual(await withOurs(play), kept);
});
