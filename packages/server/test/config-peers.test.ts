import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "./support/config.ts";

function withPeerUrls(urls: string, gate = "true") {
  const cluster = urls.split(",").map((url) => `default=${url}`);
  return run([
    `--feature-gates=SetMemberLocalAddr=${gate}`,
    `--initial-advertise-peer-urls=${urls}`,
    `--initial-cluster=${cluster.join(",")}`,
  ]);
}

test("the local address for peers is the first advertised one that others can reach", async () => {
  const urls = "http://db.example:1,http://127.0.0.1:1,http://[::1]:1,http://10.0.0.7:1";
  assert.equal((await withPeerUrls(urls)).config.localAddress, "10.0.0.7");
  assert.equal((await withPeerUrls(urls, "false")).config.localAddress, undefined);
  const none = await withPeerUrls("http://db.example:1,http://127.0.0.1:1");
  assert.equal(none.config.localAddress, undefined);
  assert.ok(none.notices.some(({ msg }) => /unable to set a member local address/.test(msg)));
});

test("the read timeout of peers has a least value, and no fsync is a warning", async () => {
  const { config, notices } = await run(["--raft-read-timeout=1s", "--unsafe-no-fsync"]);
  assert.equal(config.raftReadTimeoutMs, 5000);
  assert.equal(config.unsafeNoFsync, true);
  assert.ok(notices.some(({ msg }) => /fsync is off/.test(msg)));
  assert.equal((await run(["--raft-read-timeout=7s"])).config.raftReadTimeoutMs, 7000);
});
