/** Visits of several clients are one count. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCluster } from "@quorate/testing";
import { visit } from "./visits.ts";

test("visits of all clients are counted together", async () => {
  await using cluster = await testCluster();
  const [one, other] = [cluster.client(), cluster.client()];
  await Promise.all([visit(one, "a"), visit(other, "a"), visit(one, "b")]);
  assert.equal(await visit(other, "a"), 3);
});
