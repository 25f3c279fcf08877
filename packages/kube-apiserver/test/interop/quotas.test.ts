/** ResourceQuotas refuse and count what they do with kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { keptAnswers } from "./comparison.ts";
import { play } from "./quotas/play.ts";
import { accessOf } from "./rest/exchange.ts";

test("ResourceQuotas have kube-apiserver's answers", async () => {
  await using api = await startApiServer({ controllers: [] });
  const kept = keptAnswers(join(import.meta.dirname, "quotas"));
  assert.ok(kept.length > 200);
  const ours = await play(accessOf(api.kubeconfig));
  assert.deepEqual(ours, kept);
});
