/** Addresses "host:port". */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostOfAddress, joinHostPort, splitHostPort } from "@quorate/host";

test("what is joined is split again, and IPv6 has brackets", () => {
  for (const [text, host, port] of [
    ["a.example:2379", "a.example", 2379],
    ["127.0.0.1:0", "127.0.0.1", 0],
    ["[::1]:65535", "::1", 65_535],
    ["[fe80::1%eth0]:1", "fe80::1%eth0", 1],
    [":80", "", 80],
  ] as const) {
    assert.deepEqual(splitHostPort(text), { host, port });
    assert.equal(joinHostPort(host, port), text);
    assert.equal(hostOfAddress(text), host);
  }
});

test("what is no address is refused", () => {
  for (const text of ["", "a", "a:", "a:65536", "a:1x", "::1", "[::1]", "a:b:1", "[]:1", "[a]b:1"])
    assert.equal(splitHostPort(text), undefined, text);
  assert.equal(hostOfAddress("@"), "@");
});
