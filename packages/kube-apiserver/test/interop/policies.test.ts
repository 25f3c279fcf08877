/** Admission policies are refused, and judge requests, as kube-apiserver 1.36 does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { differencesFrom, keptAnswers } from "./policies/play.ts";
import { accessOf } from "./rest/exchange.ts";

test("Admission policies have kube-apiserver's answers", async () => {
  await using api = await startApiServer();
  const kept = keptAnswers();
  assert.ok(kept.length > 100);
  assert.deepEqual(await differencesFrom(accessOf(api.kubeconfig), kept), []);
});
