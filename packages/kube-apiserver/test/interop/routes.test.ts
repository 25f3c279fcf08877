/**
 * Each form of path with each method has kube-apiserver 1.36's stored answer: in a build as one of
 * three users, another one in the next run; with QUORATE_SOAK as all three.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { freshSeed } from "../../../../test/support/fresh-seed.ts";
import { accessOf } from "./rest/exchange.ts";
import { accepted } from "./routes/differences.ts";
import { keptAnswers, routeDifferences } from "./routes/kept.ts";
import { routePaths } from "./routes/paths.ts";
import { routeAnswers, USERS } from "./routes/play.ts";

const ALL = process.env["QUORATE_SOAK"] === "1";

test("Paths and methods have kube-apiserver's answers", async (t) => {
  await using api = await startApiServer();
  const users = Object.keys(USERS).length;
  const turn = ALL ? undefined : freshSeed() % users;
  t.diagnostic(`turn ${turn}`);
  const ours = await routeAnswers(accessOf(api.kubeconfig), "", turn);
  const kept = keptAnswers();
  assert.equal(kept.length, routePaths().length * users);
  assert.equal(ours.length, ALL ? kept.length : routePaths().length);
  const used = new Set<string>();
  assert.deepEqual(routeDifferences(ours, kept, used), []);
  if (ALL)
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
