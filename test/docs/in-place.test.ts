/**
 * docs/guide/in-place.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { delimiter, dirname } from "node:path";
import { test } from "node:test";
import { etcdNewest, skipWithoutEtcdNewest } from "../support/executables.ts";
import { runGuide, skipGuides } from "./guide.ts";

const skip = skipGuides || skipWithoutEtcdNewest;

test("the commands of the guide in place do what it says, there and back", { skip }, async () => {
  // The etcd of the guide, before an older one that is installed.
  const path = `${dirname(etcdNewest!.command[0])}${delimiter}${process.env["PATH"]}`;
  const { outputs } = await runGuide("guide/in-place.md", { PATH: path });
  const all = outputs.map(({ printed }) => printed).join("");
  const hashes = [...all.matchAll(/^http:\S+, (\d+), \d+$/gm)].map((match) => match[1]);
  assert.equal(hashes.length, 4, all);
  assert.equal(hashes[1], hashes[0], "Quorate has the hash that etcd had");
  assert.equal(hashes[3], hashes[2], "etcd has the hash that Quorate had");
  const members = [...all.matchAll(/^([0-9a-f]+), started, e1, /gm)].map((match) => match[1]);
  assert.equal(members.length, 2, all);
  assert.equal(members[1], members[0], "the same member");
  assert.match(all, /cluster version 3\.7\.0/);
  assert.ok(all.endsWith("greeting\nhello from Quorate\n"), all);
});
