/** About 170 requests have the responses that kube-apiserver 1.36 has: stored ones are compared. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { keptAnswers } from "./comparison.ts";
import { differencesOf, responsesOf } from "./rest/compare.ts";
import { type ApiResponse, accessOf } from "./rest/exchange.ts";

test("Requests have kube-apiserver's responses", async () => {
  await using api = await startApiServer();
  const ours = await responsesOf(accessOf(api.kubeconfig));
  const kept = keptAnswers<ApiResponse>(join(import.meta.dirname, "rest"));
  assert.equal(ours.length, kept.length);
  assert.deepEqual(differencesOf(ours, kept), []);
});

test("A changed response is found", async () => {
  const kept = keptAnswers<ApiResponse>(join(import.meta.dirname, "rest"));
  const request = { method: "GET", path: "/" };
  const ours = kept.map((response) => ({ request, response }));
  assert.deepEqual(differencesOf(ours, kept), []);
  const [first, ...rest] = ours;
  const changed = { request, response: { ...first.response, status: 418 } };
  assert.equal(differencesOf([changed, ...rest], kept).length, 1);
});
