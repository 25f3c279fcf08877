/**
 * docs/operate/control-plane.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runGuide, skipGuides } from "../../../test/docs/guide.ts";
import { findProgram } from "../../../test/support/executables.ts";

const missing = ["kubectl", "openssl", "curl"].find((name) => findProgram(name) === undefined);
const skip = skipGuides || (missing !== undefined && `${missing} is not on PATH`);

test("the commands of the control plane's page do what it says", { skip }, async () => {
  const { printed } = await runGuide("operate/control-plane.md");
  assert.match(printed("make_certificate etcd/server"), /^apiserver-etcd-client\.crt$/m);
  assert.match(printed("/livez\nexport"), /ok.*127\.0\.0\.1:2379 is healthy/s);
  assert.match(printed("member add node-2"), /ETCD_INITIAL_CLUSTER_STATE="existing"/);
  const health = printed("member promote");
  for (const address of ["127.0.0.1", "127.0.0.2"])
    assert.ok(health.includes(`https://${address}:2379 is healthy`), health);
  assert.match(printed("configmap shared"), /\nfirst\n\/registry\/configmaps\/default\/shared\n/);
});
