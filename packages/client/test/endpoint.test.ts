import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../node/connect.ts";
import { parseEndpoint } from "../src/endpoint.ts";

test("endpoints come with or without a scheme", () => {
  assert.deepEqual(parseEndpoint("127.0.0.1:2379", false), {
    text: "127.0.0.1:2379",
    secure: false,
    address: "127.0.0.1:2379",
  });
  assert.deepEqual(parseEndpoint("127.0.0.1:2379", true), {
    text: "127.0.0.1:2379",
    secure: true,
    address: "127.0.0.1:2379",
  });
  assert.deepEqual(parseEndpoint("http://h:1", true), {
    text: "http://h:1",
    secure: false,
    address: "h:1",
  });
  assert.deepEqual(parseEndpoint(" https://[::1]:1/ ", false), {
    text: "https://[::1]:1/",
    secure: true,
    address: "[::1]:1",
  });
  assert.deepEqual(parseEndpoint("unix:///run/q.sock", false), {
    text: "unix:///run/q.sock",
    secure: false,
    address: "unix:/run/q.sock",
  });
  assert.deepEqual(parseEndpoint("unixs:q.sock", false), {
    text: "unixs:q.sock",
    secure: true,
    address: "unix:q.sock",
  });
});

test("a malformed port is refused, and an IPv6 address without brackets", () => {
  for (const text of ["h:99999", "http://h:abc", "http://h:", "[::1]:x", "h:-1"]) {
    assert.throws(
      () => parseEndpoint(text, false),
      { name: "RangeError", message: /: the port must be a number of 65535 at most$/ },
      text,
    );
  }
  assert.throws(() => parseEndpoint("::1:2379", false), {
    message: 'endpoint "::1:2379": an IPv6 address needs brackets, as in [::1]:2379',
  });
  for (const text of ["h", "http://h", "[::1]", "h:65535"]) parseEndpoint(text, false);
});

test("an endpoint without a host is refused", () => {
  assert.throws(() => parseEndpoint("", false), RangeError);
  assert.throws(() => parseEndpoint("http://", false), RangeError);
  assert.throws(() => parseEndpoint("ftp://h:1", false), {
    name: "RangeError",
    message: 'endpoint "ftp://h:1": unknown scheme ftp',
  });
  assert.throws(() => connect({ endpoints: [] }), { name: "RangeError", message: "no endpoints" });
});
