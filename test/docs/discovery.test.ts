/**
 * docs/operate/discovery.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runGuide, skipGuides } from "./guide.ts";

test("the guide to discovery does what it says", { skip: skipGuides }, async () => {
  const { outputs } = await runGuide("operate/discovery.md");
  const [, , , found, refused] = outputs.map(({ printed }) => printed);
  assert.equal(found.match(/, started, m[123], http/g)?.length, 3);
  assert.match(found, /\nOK\n/);
  assert.equal(found.match(/\/_etcd\/registry\/blue-4711\/members\/[0-9a-f]+/g)?.length, 3);
  assert.match(refused, /^ended with 1\ndiscovery: cluster is full: 3 members have registered/);
});
