/**
 * docs/operate/proxy.md, executed: proxy and gateway before members that are killed.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runGuide, skipGuides } from "./guide.ts";

test("the page about proxies does what it says", { skip: skipGuides }, async () => {
  const { printed } = await runGuide("operate/proxy.md");
  assert.match(
    printed("member list"),
    /^\{"Op":0,"Addr":"127\.0\.0\.9:23790","Metadata":"[^\n]*\n0, started, [^,]*, , 127\.0\.0\.9:23790, false\n/,
  );
  const story = printed("cmp first.txt");
  assert.match(story, /^OK\n(?:orders\/1\n)+(?:orders\/2\n)+(?:orders\/3\n)+(?:orders\/4\n)+both/);
  assert.match(story, /worker\nalive\n$/);
  const report = printed("/proxy/metrics");
  assert.match(report, /^\{"health":"true","reason":""\}\n\{"health":"true","reason":""\}\n/);
  assert.match(report, /^etcd_grpc_proxy_watchers_coalescing_total 1$/m);
  assert.match(report, /^etcd_grpc_proxy_events_coalescing_total [1-9]/m);
  assert.match(printed("put gateway"), /^OK\nOK\nOK\n(?:gateway\/\d\n\n?){3}$/);
});
