/**
 * docs/guide/migration.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithoutEtcd, skipWithoutEtcdctl } from "../support/executables.ts";
import { runGuide, skipGuides } from "./guide.ts";

const skip = skipGuides || skipWithoutEtcd || skipWithoutEtcdctl;

test("the commands of the migration guide do what it says, there and back", { skip }, async () => {
  const { outputs } = await runGuide("guide/migration.md");
  const all = outputs.map(({ printed }) => printed).join("");
  const hashes = [...all.matchAll(/^http:\S+, (\d+), \d+$/gm)].map((match) => match[1]);
  assert.equal(hashes.length, 4, all);
  assert.equal(hashes[1], hashes[0], "Quorate has the hash that etcd had");
  assert.equal(hashes[3], hashes[2], "etcd has the hash that Quorate had");
  assert.match(
    all,
    /Restored from-etcd\.db into m1\.quorate: revision 3, 1 keys; member [0-9a-f]+ \(m1\) of 1\n/,
  );
  assert.match(all, /^greeting\nhello\nOK$/m);
  assert.ok(all.endsWith("greeting\nhello from Quorate\n"), all);
});
