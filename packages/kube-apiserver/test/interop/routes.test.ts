/** Each form of path with each method, as three users, has kube-apiserver 1.36's stored answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { accessOf } from "./rest/exchange.ts";
import { accepted } from "./routes/differences.ts";
import { keptAnswers, routeDifferences } from "./routes/kept.ts";
import { routePaths } from "./routes/paths.ts";
import { routeAnswers, USERS } from "./routes/play.ts";

test("Paths and methods have kube-apiserver's answers", async () => {
  await using api = await startApiServer();
  const ours = await routeAnswers(accessOf(api.kubeconfig));
  const kept = keptAnswers();
  assert.equal(ours.length, routePaths().length * Object.keys(USERS).length);
  assert.equal(ours.length, kept.length);
  const used = new Set<string>();
  assert.deepEqual(routeDifferences(ours, kept, used), []);
  assert.deepEqual([...used].sort(), accepted.map(({ why }) => why).sort(), "one is no more");
});

test("A path that answers otherwise is found", () => {
  const kept = keptAnswers();
  const at = kept.findIndex(
    ({ path, user }) => path === "/api/v1/namespaces/foo/namespaces/victim" && user === "foo-admin",
  );
  const opened = { ...kept[at], answers: { "200": "GET HEAD POST PUT PATCH DELETE OPTIONS FOO" } };
  assert.equal(routeDifferences([opened], kept).length, 8);
});
