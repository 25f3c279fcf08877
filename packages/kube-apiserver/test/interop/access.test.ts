/** Webhooks that know tokens and decide are asked, and believed, as by kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { ourAnswers, type PlayedAnswer } from "./access/play.ts";
import { keptAnswers } from "./comparison.ts";

test("Tokens and decisions of a webhook have kube-apiserver's answers", async () => {
  const kept = keptAnswers<PlayedAnswer>(join(import.meta.dirname, "access"));
  assert.ok(kept.length > 60);
  assert.deepEqual(await ourAnswers(), kept);
});
