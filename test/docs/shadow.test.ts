/**
 * docs/guide/shadow.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { delimiter, dirname } from "node:path";
import { test } from "node:test";
import { etcdNewest, skipWithoutEtcdNewest } from "../support/executables.ts";
import { runGuide, skipGuides } from "./guide.ts";

const skip = skipGuides || skipWithoutEtcdNewest;

test("the commands of the guide on shadows do what it says", { skip }, async () => {
  const path = `${dirname(etcdNewest!.command[0])}${delimiter}${process.env["PATH"]}`;
  const { outputs } = await runGuide("guide/shadow.md", { PATH: path });
  const [checked, followed, left, again] = outputs.map(({ printed }) => printed);
  assert.match(checked!, /Nothing is wrong/);
  assert.match(followed!, /equal over \d+ revisions/);
  assert.match(followed!, /, started, shadow, http:\/\/127\.0\.0\.2:2380, , true/);
  assert.match(left!, /equal over \d+ revisions, up to \d+; the learner has left the cluster/);
  assert.doesNotMatch(left!, /started, shadow/);
  assert.match(again!, /it has left already/);
});
