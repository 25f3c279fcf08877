/**
 * docs/guide/kubernetes.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { runGuide, skipGuides } from "../../../test/docs/guide.ts";
import { skipWithout } from "../../../test/support/executables.ts";

const root = join(import.meta.dirname, "../../..");
test("the guide to the API server does what it says", {
  skip: skipGuides || skipWithout("kubectl"),
}, async () => {
  const { printed } = await runGuide("guide/kubernetes.md");
  const start = printed("create configmap hello");
  assert.match(start, /^kube-system +Active/m);
  assert.match(start, /^world$/m);
  const custom = printed("widgets.example.org");
  assert.match(custom, /condition met/);
  assert.match(custom, /^NAME +SIZE\none +3$/m);
  assert.match(custom, /^refused$/m);
  const users = printed("auth can-i list");
  assert.match(users, /^yes$[\s\S]*^no$/m);
  const secret = printed("opensesame");
  assert.match(secret, /^opensesame$/m);
  assert.match(secret, /^k8s:enc:aesgcm:v1:key1:/m);
  assert.match(secret, /^not in clear text$/m);
  const stored = printed("create configmap plain");
  assert.match(stored, /^the same$/m);
  assert.match(stored, /^# encrypted by aesgcm with the key "key1", \d+ bytes$/m);
});

test("the guide's example runs", async () => {
  const example = join(import.meta.dirname, "../examples/widgets.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [example], { timeout: 120_000 });
  assert.match(stdout, /^422 Widget\.example\.org "two" is invalid: spec\.size: /);
  assert.match(stdout, /^1 widget, kubeconfig: \//m);
});

test("the guide's map names files that are there", () => {
  const guide = readFileSync(join(root, "docs/guide/kubernetes.md"), "utf8");
  const paths = [...guide.matchAll(/`(kube-\w+\/[\w/-]+\.ts)`/g)].map(([, path]) => path);
  assert.ok(paths.length >= 17);
  for (const path of paths) assert.ok(existsSync(join(root, "packages", path)), path);
});
