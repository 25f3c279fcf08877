/**
 * docs/operate/operator.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runGuide, skipGuides } from "../../../../test/docs/guide.ts";
import { findProgram } from "../../../../test/support/executables.ts";

const skip = skipGuides || (findProgram("kubectl") === undefined && "kubectl is not on PATH");

test("the commands of the operator's page do what it says", { skip }, async () => {
  const { printed } = await runGuide("operate/operator.md");
  assert.match(printed("--print-definitions"), /quorateusers\.quorate\.dev created/);
  const cluster = printed("name: db}\nspec:\n  size: 3");
  for (const name of ["service/db-client", "service/db-peer", "secret/db-root-tls"])
    assert.ok(cluster.includes(`${name}\n`), cluster);
  assert.match(cluster, /persistentvolumeclaim\/db-0\n/);
  assert.match(cluster, /Bootstrap +the first member\n/);
  assert.match(printed("db-daily"), /db-always +db +/);
  assert.match(printed("copy-of-monday"), /\n\/backup\/db\/always\n$/);
  assert.match(printed("kind: QuorateUser"), /\npassword\n$/);
  assert.match(
    printed("/metrics"),
    /quorate_operator_cluster_size\{name="db",namespace="default"\} 3/,
  );
});
