/** The rule on targets finds a violation planted for it, and none in the package. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { clean, finds } from "../../../test/house/planted.ts";
import { formatFindings, readTree } from "../../../test/house/tree.ts";
import { checkTargets } from "./targets.ts";

const at = "packages/kube-apiserver/src/handlers/a.ts";
test("a handler that makes a Target, or reads the head of the request", () => {
  const made = "\nconst other = Target.of(method, path, query);";
  finds(checkTargets, { [at]: made }, `${at}:2`, /makes a Target/);
  const read = "\nconst { method, path } = call.head;";
  finds(checkTargets, { [at]: read }, `${at}:2`, /reads the request's head/);
  finds(checkTargets, { [at]: "use(call.head.path);" }, `${at}:1`, /reads the request's head/);
  clean(checkTargets, {
    [at]: "use(call.target.path); // not call.head.path",
    "packages/kube-apiserver/src/server/api-server.ts": "Target.of(head.method, head.path, query);",
    "packages/kube-apiserver/test/a.ts": "Target.of(method, path, query);",
  });
});

test("the API server reads a request's path once", () => {
  const files = readTree();
  assert.ok(files.some(({ path }) => path === "packages/kube-apiserver/src/handlers/target.ts"));
  assert.equal(formatFindings(checkTargets(files)), "");
});
