/**
 * docs/guide/v2.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runGuide, skipGuides } from "./guide.ts";

test("the guide to the v2 API does what it says", { skip: skipGuides }, async () => {
  const { outputs } = await runGuide("guide/v2.md");
  const [keys, waited, roles] = outputs.map(({ printed }) => printed);
  assert.match(keys, /"action":"set","node":\{"key":"\/foo","value":"bar"/);
  assert.match(keys, /"action":"compareAndSwap","node":\{"key":"\/foo","value":"baz"/);
  assert.match(keys, /"errorCode":101,"message":"Compare failed","cause":"\[bar != baz\]"/);
  assert.match(keys, /"action":"create","node":\{"key":"\/queue\/\d+","value":"job"/);
  assert.match(keys, /"action":"get","node":\{"dir":true,"nodes":\[/);
  assert.match(waited, /^\{"action":"compareAndSwap","node":\{"key":"\/foo","value":"baz"/);
  assert.match(roles, /Role app updated\nRole app updated\n$/);
});
