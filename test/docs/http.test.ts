/**
 * docs/guide/http.md, executed.
 * @slow
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../support/executables.ts";
import { runGuide, skipGuides } from "./guide.ts";

test("the guide to keys over HTTP does what it says", {
  skip: skipGuides || skipWithout("curl"),
}, async () => {
  const { printed } = await runGuide("guide/http.md");
  assert.match(
    printed("-d 'hello'"),
    /^HTTP\/1\.1 201 Created\n[\s\S]*etag: "2"\n[\s\S]*HTTP\/1\.1 200 OK\n[\s\S]*\n\nhello$/,
  );
  assert.match(
    printed("od -An"),
    /^ 00 ff 00\nHTTP[\s\S]*content-type: text\/plain\n[\s\S]*\n404\n$/,
  );
  assert.match(
    printed("'worker 1'"),
    /^HTTP\/1\.1 201 [\s\S]*HTTP\/1\.1 412 [\s\S]*first: 204\nsecond: 412\nworker 3$/,
  );
  assert.equal(printed("increment()"), "5");
  assert.match(printed("If-None-Match: $(curl"), /^HTTP\/1\.1 304 /);
  const lists = printed("users/raw");
  assert.match(lists, /"key":"users\/raw","value":\{"base64":"\/w=="\}/);
  assert.match(
    lists,
    /\{"key":"users\/3","create_revision":\d+,"mod_revision":\d+,"version":1\}\n/,
  );
  assert.match(printed('/?prefix"\ncurl -s -o'), /^\{"deleted":4,"revision":\d+\}\n400\n$/);
  assert.match(printed("?ttl=2"), /^HTTP\/1\.1 201 [\s\S]*quorate-ttl: 2\n/);
  assert.match(
    printed("?lease=$lease"),
    /quorate-lease: \d+\n[\s\S]*"TTL":"60"[\s\S]*"revision"[^\n]*\}$/,
  );
  assert.match(
    printed('"from","value":"100"},{"put"'),
    /"succeeded":true,[^\n]*\n\{\},\n\{\},\n\{"kvs":\[\{"key":"to","value":"40"/,
  );
  const watched = printed("-d red");
  assert.match(
    watched,
    /: watching\nid: \d+\n\ndata: \[\{"type":"put","key":"color","value":"red"/,
  );
  assert.match(watched, /"value":"green"[^\n]*\},\ndata: \{"type":"put","key":"colors"/);
  assert.match(watched, /data: \[\{"type":"delete","key":"color","mod_revision":\d+\}\]\nid: /);
  const resumed = printed("Last-Event-ID: $((");
  assert.doesNotMatch(resumed, /red|green/);
  assert.match(resumed, /"type":"delete"/);
  assert.match(printed("-d blue"), /"value":"blue"/);
  const errors = printed("?revision=1");
  assert.match(errors, /^HTTP\/1\.1 400 [\s\S]*content-type: application\/problem\+json\n/);
  assert.match(errors, /"code":"FutureRev"[\s\S]*then\[0\]\.value is missing; write a text/);
  const users = printed("auth enable");
  assert.match(users, /HTTP\/1\.1 401 [\s\S]*www-authenticate: Basic [\s\S]*\nblue/);
  assert.match(users, /"permission-denied|problem:permission-denied/);
  assert.match(users, /invalid user ID or password[\s\S]*\nblue$/);
  assert.match(printed("Origin: http://example.com"), /problem:cross-site/);
});
