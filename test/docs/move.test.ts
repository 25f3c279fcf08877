/**
 * docs/guide/move.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { delimiter, dirname } from "node:path";
import { test } from "node:test";
import { etcdNewest, skipWithoutEtcdNewest } from "../support/executables.ts";
import { runGuide, skipGuides } from "./guide.ts";

const skip = skipGuides || skipWithoutEtcdNewest;

test("the commands of the guide on moving do what it says, there and back", { skip }, async () => {
  // The etcd of the guide, before an older one that is installed.
  const path = `${dirname(etcdNewest!.command[0]!)}${delimiter}${process.env["PATH"]}`;
  const guide = await runGuide("guide/move.md", { PATH: path });
  assert.match(
    guide.printed("--dry-run"),
    /The plan, to quorate:\n.*hand leadership from e1 to q1/s,
  );
  const all = guide.outputs.map(({ printed }) => printed).join("");
  assert.match(guide.printed("q1.pid"), /All members are of quorate: 1 are equal at revision 2\./);
  assert.match(guide.printed("member list"), /^[0-9a-f]+, started, q1, /m);
  assert.match(guide.printed("e2.pid"), /All members are of etcd: 1 are equal at revision 3\./);
  const hashes = [...all.matchAll(/^http:\S+, (\d+), \d+$/gm)].map((match) => match[1]);
  assert.equal(hashes.length, 3, all);
  assert.equal(hashes[2], hashes[1], "etcd has the hash that Quorate had");
  assert.ok(all.endsWith("greeting\nhello from Quorate\n"), all);
});
