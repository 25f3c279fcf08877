/**
 * docs/guide/gateway.md, executed.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../support/executables.ts";
import { runGuide, skipGuides } from "./guide.ts";

test("the guide to the JSON gateway does what it says", {
  skip: skipGuides || skipWithout("curl"),
}, async () => {
  const { printed } = await runGuide("guide/gateway.md");
  assert.match(
    printed("/v3/kv/txn"),
    /"revision":"2"[\s\S]*"key":"Zm9v"[\s\S]*"succeeded":true,"responses":\[\{"response_put"/,
  );
  assert.ok(Number(printed("/openapi.json")) > 40);
  const errors = printed('"revision":"1000"').split("\n");
  assert.match(
    errors[0],
    /"code":11,"message":"etcdserver: mvcc: required revision is a fu.* 400$/,
  );
  assert.match(errors[1], /^\{"code":3,"message":"unexpected EOF"\} 400$/);
  assert.match(errors[2], /^\{"code":5,"message":"Not Found"\} 404$/);
  assert.match(errors[3], /^\{"code":12,"message":"Method Not Allowed"\} 501$/);
  const streams = printed("/v3/watch");
  assert.match(streams, /^\{"result":\{"header".*"created":true\}\}\n\{"result":.*"events":\[/);
  assert.match(
    streams,
    /"ID":"7","TTL":"60"\}\}?\n?\{"result":.*"ID":"7".*\n\{"result":.*"ID":"8"/,
  );
  const users = printed("/v3/auth/authenticate");
  assert.match(users, /user name is empty"\} 400\n.*permission denied"\} 403\n.*"kvs":\[/);
  assert.match(printed("Origin: http://example.com"), /--cors does not allow[\s\S]* 403\n$/);
});
