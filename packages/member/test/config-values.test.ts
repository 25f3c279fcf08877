import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isIpAddress,
  parseInitialCluster,
  parseUrl,
  parseUrls,
  sameUrl,
  urlsText,
} from "../src/config/url.ts";
import { parseBool, parseDurationMs, parseInteger, parseUniqueList } from "../src/config/values.ts";

test("what is no duration is refused with Go's words", () => {
  assert.throws(() => parseDurationMs("5"), {
    message: 'time: missing unit in duration "5" (expected one such as 300ms, 10s or 1h30m)',
  });
  assert.throws(() => parseDurationMs("5 s"), {
    message: /^time: unknown unit " s" in duration "5 s" \(/,
  });
  assert.throws(() => parseDurationMs("5d"), {
    message: /^time: unknown unit "d" in duration "5d" \(expected ns, us, ms, s, m or h\)$/,
  });
  assert.throws(() => parseDurationMs("s"), { name: "ValueError" });
});

test("whole numbers come in Go's literal forms and within bounds", () => {
  assert.equal(parseInteger("42", 0, 100), 42);
  assert.equal(parseInteger("0x2A", 0, 100), 42);
  assert.equal(parseInteger("0b101", 0, 100), 5);
  assert.equal(parseInteger("0o17", 0, 100), 15);
  assert.equal(parseInteger("017", 0, 100), 15);
  assert.equal(parseInteger("1_000", 0, 10_000), 1000);
  assert.equal(parseInteger("-7", -10, 10), -7);
  assert.equal(parseInteger("0", 0, 10), 0);
  for (const bad of ["", "x", "1.5", "1e3", " 1", "1 ", "0x", "0b2", "-1", "+1"]) {
    assert.throws(
      () => parseInteger(bad, 0, 100, "bytes"),
      { message: "parse error (expected a whole number; unit: bytes)" },
      bad,
    );
  }
  assert.throws(() => parseInteger("101", 0, 100), {
    message: "value out of range (expected 0 to 100)",
  });
  assert.throws(() => parseInteger("-11", -10, 10), {
    message: "value out of range (expected -10 to 10)",
  });
});

test("booleans come in Go's spellings alone", () => {
  for (const text of ["1", "t", "T", "true", "TRUE", "True"]) assert.equal(parseBool(text), true);
  for (const text of ["0", "f", "F", "false", "FALSE", "False"])
    assert.equal(parseBool(text), false);
  for (const text of ["", "yes", "on", "tRUE"])
    assert.throws(() => parseBool(text), { message: "parse error (expected true or false)" });
});

test("unique lists are sorted and have each text once", () => {
  assert.deepEqual(parseUniqueList("b,a,b"), ["a", "b"]);
  assert.deepEqual(parseUniqueList(""), []);
});

test("a member URL is scheme, host and port", () => {
  assert.deepEqual(parseUrl("http://127.0.0.1:2380"), {
    scheme: "http",
    host: "127.0.0.1",
    port: 2380,
    path: "",
    text: "http://127.0.0.1:2380",
  });
  assert.deepEqual(parseUrl(" HTTPS://[::1]:0 "), {
    scheme: "https",
    host: "::1",
    port: 0,
    path: "",
    text: "https://[::1]:0",
  });
  assert.deepEqual(parseUrl("unix:///run/q.sock"), {
    scheme: "unix",
    host: "",
    port: 0,
    path: "/run/q.sock",
    text: "unix:///run/q.sock",
  });
  assert.deepEqual(parseUrl("unixs://localhost:17"), {
    scheme: "unixs",
    host: "",
    port: 0,
    path: "localhost:17",
    text: "unixs://localhost:17",
  });
});

test("bad URLs are refused with etcd's words", () => {
  const refused: [string, string][] = [
    ["localhost:2380", "URL scheme must be http, https, unix, or unixs: localhost:2380"],
    ["ftp://a:1", "URL scheme must be http, https, unix, or unixs: ftp://a:1"],
    ["//a:1", "URL scheme must be http, https, unix, or unixs: //a:1"],
    ["http://a", 'URL address does not have the form "host:port": http://a'],
    ["http://a:", 'URL address does not have the form "host:port": http://a:'],
    ["http://::1:80", 'URL address does not have the form "host:port": http://::1:80'],
    ["http://u@a:1", 'URL address does not have the form "host:port": http://u@a:1'],
    ["http:a:1", 'URL address does not have the form "host:port": http:a:1'],
    ["http://a:1/", "URL must not contain a path: http://a:1/"],
    ["http://a:1/x", "URL must not contain a path: http://a:1/x"],
    ["http://a:1?x", "URL must not contain a query or fragment: http://a:1?x"],
    ["http://a:http", 'parse "http://a:http": invalid port ":http" after host'],
    ["http://a:65536", "URL port must be at most 65535: http://a:65536"],
    ["unix:", "URL of a unix socket must name its file: unix:"],
    [
      `unix:///${"x".repeat(103)}`,
      `path of a unix socket must have at most 103 bytes, got 104: unix:///${"x".repeat(103)}`,
    ],
  ];
  for (const [text, message] of refused)
    assert.throws(() => parseUrl(text), { name: "ValueError", message }, text);
});

test("lists of URLs are sorted and have each URL once", () => {
  assert.equal(urlsText(parseUrls("http://b:1,http://a:1,http://b:1")), "http://a:1,http://b:1");
  assert.throws(() => parseUrls("http://a:1,"), {
    message: /unixs: the URL is empty \(a comma too many\?\)$/,
  });
});

test("--initial-cluster maps names to URLs and keeps repetitions for the duplicate check", () => {
  const cluster = parseInitialCluster("a=http://h:2,b=http://h:3,a=http://h:1,a=http://h:1,");
  assert.deepEqual(
    [...cluster].map(([name, urls]) => [name, urlsText(urls)]),
    [
      ["a", "http://h:1,http://h:1,http://h:2"],
      ["b", "http://h:3"],
    ],
  );
  assert.throws(() => parseInitialCluster("a"), { name: "ValueError" });
});

test("addresses are distinguished from names", () => {
  for (const address of [
    "0.0.0.0",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1%eth0",
    "2001:db8::1:2",
    "::ffff:1.2.3.4",
    "1:2:3:4:5:6:7:8",
  ]) {
    assert.equal(isIpAddress(address), true, address);
  }
  for (const name of [
    "",
    "localhost",
    "1.2.3",
    "1.2.3.4.",
    "256.1.1.1",
    "1.2.3.4.5",
    "a.b.c.d",
    ":",
    ":::",
    "1:2:3:4:5:6:7",
    "1::2::3",
    "12345::",
    "::1.2.3",
  ]) {
    assert.equal(isIpAddress(name), false, name);
  }
});

test("URLs are compared by place, not by spelling of an IPv6 address", () => {
  const same = (a: string, b: string): boolean => sameUrl(parseUrl(a), parseUrl(b));
  assert.equal(same("http://[::1]:1", "http://[0:0:0:0:0:0:0:1]:1"), true);
  assert.equal(same("http://[2001:DB8::1]:1", "http://[2001:db8:0::1]:1"), true);
  assert.equal(same("http://[::1]:1", "http://[::2]:1"), false);
  assert.equal(same("http://a:1", "https://a:1"), false);
  assert.equal(same("http://a:1", "http://a:2"), false);
});
