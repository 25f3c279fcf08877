/** Admission policies are refused, and judge requests, as kube-apiserver 1.36 does. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { keptAnswers } from "./comparison.ts";
import { differencesFrom } from "./policies/play.ts";
import { type ApiResponse, accessOf } from "./rest/exchange.ts";

test("Admission policies have kube-apiserver's answers", async () => {
  await using api = await startApiServer();
  const kept = keptAnswers<ApiResponse>(join(import.meta.dirname, "policies"));
  assert.ok(kept.length > 100);
  assert.deepEqual(await differencesFrom(accessOf(api.kubeconfig), kept), []);
});
