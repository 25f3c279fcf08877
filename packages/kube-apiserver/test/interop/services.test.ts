/** Services are given addresses and ports, and refused them, as with kube-apiserver 1.36. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { keptAnswers } from "./comparison.ts";
import { accessOf } from "./rest/exchange.ts";
import { play } from "./services/play.ts";

test("Services have kube-apiserver's addresses and ports", async () => {
  await using api = await startApiServer();
  const kept = keptAnswers(join(import.meta.dirname, "services"));
  assert.ok(kept.length > 100);
  const ours = await play(accessOf(api.kubeconfig));
  assert.deepEqual(ours, kept);
});
