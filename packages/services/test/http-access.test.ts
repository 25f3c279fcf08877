import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock, MemoryExchange } from "@quorate/host/testing";
import { controlAccess } from "../src/http/access.ts";

type Config = Parameters<typeof controlAccess>[1];

interface Asked {
  readonly method?: string;
  readonly isSecure?: boolean;
  readonly path?: string;
}

/** A request to a port with these settings; status 204 is the endpoint's. */
function ask(
  config: Partial<Config>,
  headers: Readonly<Record<string, string>>,
  { method = "POST", isSecure = false, path = "/v3/kv/put" }: Asked = {},
): MemoryExchange {
  const logged: string[] = [];
  const logger = { ...silentLogger, warn: (msg: string) => void logged.push(msg) };
  const all = { allowedHosts: undefined, allowedOrigins: undefined, areOriginsGiven: true };
  const settings: Config = { ...all, ...config };
  const handler = controlAccess(
    (exchange) => {
      exchange.respond({ status: 204, headers: { own: "1" }, body: "" });
      return {};
    },
    settings,
    { clock: new ManualClock(), logger },
  );
  const head = { path, method, isSecure, headers: new Map(Object.entries(headers)) };
  return new MemoryExchange(head).serve(handler);
}

test("without TLS a request is served for the hosts of the list alone", () => {
  const allowedHosts = new Set(["db.example", "::1"]);
  for (const host of ["db.example", "DB.example:2379", "[::1]:2379"])
    assert.equal(ask({ allowedHosts }, { host }).status, 204, host);
  for (const host of ["evil.example", "db.example.evil:2379", ""])
    assert.equal(ask({ allowedHosts }, { host }).status, 421, host);
  assert.equal(ask({ allowedHosts }, { host: "evil.example" }, { isSecure: true }).status, 204);
  const { text } = ask({ allowedHosts }, { host: "evil.example:1" });
  assert.match(text, /the Host header was unrecognized[\s\S]*--host-whitelist "evil.example"/);
});

test("origins get Access-Control headers, and OPTIONS is for them alone", () => {
  const any = ask({}, { origin: "http://a.example" });
  assert.equal(any.headers["access-control-allow-origin"], "*");
  assert.equal(any.headers["own"], "1");
  const asked = ask({}, { origin: "http://a.example" }, { method: "OPTIONS" });
  assert.deepEqual([asked.status, asked.text, asked.headers["own"]], [200, "", undefined]);
  const allowedOrigins = new Set(["http://a.example"]);
  const listed = ask({ allowedOrigins }, { origin: "http://A.example" });
  assert.equal(listed.headers["access-control-allow-origin"], "http://A.example");
  const other = ask({ allowedOrigins }, { origin: "http://b.example" }, { method: "GET" });
  assert.equal(other.status, 204);
  assert.equal(other.headers["access-control-allow-origin"], undefined);
});

test("a page of another site changes nothing where origins are listed", () => {
  const allowedOrigins = new Set(["http://a.example"]);
  const own = "db.example:2379";
  const from = (headers: Readonly<Record<string, string>>, options = {}) =>
    ask({ allowedOrigins }, { host: own, ...headers }, options).status;
  assert.equal(from({ origin: "http://b.example" }), 403);
  assert.equal(from({ origin: "null" }), 403);
  assert.equal(from({ origin: `https://${own}` }), 403);
  assert.equal(from({ "sec-fetch-site": "cross-site" }), 403);
  assert.equal(from({ "sec-fetch-site": "same-site" }), 403);
  const spellings = "WebSocket|websocket, x|x,websocket|websocket/13|\twebsocket|h2c, WEBSOCKET|";
  for (const upgrade of spellings.split("|")) {
    const socket = { upgrade, origin: "http://b.example" };
    assert.equal(from(socket, { method: "GET" }), 403, upgrade);
    assert.equal(from({ ...socket, origin: "http://a.example" }, { method: "GET" }), 204);
  }
  // A WebSocket over HTTP/2 begins with CONNECT.
  assert.equal(from({ origin: "http://b.example" }, { method: "CONNECT" }), 403);
  assert.equal(from({ origin: "http://a.example" }), 204);
  assert.equal(from({ origin: `http://${own}` }), 204);
  assert.equal(from({ "sec-fetch-site": "same-origin" }), 204);
  assert.equal(from({ "content-type": "application/x-www-form-urlencoded" }), 204);
  assert.equal(from({ origin: "http://b.example" }, { method: "GET" }), 204);
});

test("by default pages of other sites read what etcd lets them read, and write nothing", () => {
  const config = { areOriginsGiven: false };
  const headers = { origin: "http://a.example", host: "db.example" };
  assert.equal(ask(config, headers).status, 403);
  const read = ask(config, headers, { method: "GET" });
  assert.deepEqual([read.status, read.headers["access-control-allow-origin"]], [204, "*"]);
  assert.equal(ask(config, { ...headers, origin: "http://db.example" }).status, 204);
  assert.equal(ask(config, { host: "db.example" }).status, 204);
});

test("keys by path are for pages of other sites only where --cors is given", () => {
  const from = (config: Partial<Config>, headers: Readonly<Record<string, string>>) =>
    ask(config, headers, { method: "GET", path: "/kv/a" }).headers["access-control-allow-origin"];
  const headers = { origin: "http://a.example" };
  assert.equal(from({ areOriginsGiven: false }, headers), undefined);
  assert.equal(from({ areOriginsGiven: true }, headers), "*");
  assert.equal(from({ areOriginsGiven: true }, {}), undefined);
  const listed = { areOriginsGiven: true, allowedOrigins: new Set(["http://a.example"]) };
  assert.equal(from(listed, headers), "http://a.example");
});
