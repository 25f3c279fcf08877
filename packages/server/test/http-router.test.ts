/** The router of the client port: paths, prefixes, and the policy of plain endpoints. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type HttpExchangeHandler, silentLogger } from "@quorate/host";
import { MemoryExchange } from "@quorate/host/testing";
import { exchangeRouter, plainRoutes } from "../src/http/endpoints.ts";

const named =
  (name: string): HttpExchangeHandler =>
  (exchange) => {
    exchange.respond({ status: 200, headers: {}, body: name });
    return {};
  };

test("a request goes to its path, or to the longest prefix that ends in a slash", () => {
  const paths = ["/a", "/a/", "/a/b/", "/c"];
  const router = exchangeRouter(new Map(paths.map((path) => [path, named(path)])));
  const cases: readonly (readonly [string, string])[] = [
    ["/a", "/a"],
    ["/a/", "/a/"],
    ["/a/x/y", "/a/"],
    ["/a/b", "/a/"],
    ["/a/b/c", "/a/b/"],
    ["/c", "/c"],
    ["/c/", "404 page not found"],
    ["/", "404 page not found"],
    ["*", "404 page not found"],
  ];
  for (const [path, expected] of cases) {
    const exchange = new MemoryExchange({ path }).serve(router);
    assert.equal(exchange.text.trim(), expected, path);
    assert.equal(exchange.status, expected.startsWith("/") ? 200 : 404);
  }
});

test("a plain endpoint is not served across sites, nor with a body that is too long", () => {
  const endpoint = () => ({ status: 200, headers: {}, body: "fine" });
  const router = exchangeRouter(new Map(plainRoutes(new Map([["/", endpoint]]), silentLogger)));
  const status = (method: string, fields: Record<string, string>, sizeBytes = 0) => {
    const headers = new Map(Object.entries(fields));
    const exchange = new MemoryExchange({ method, path: "/", headers });
    return exchange.serve(router, [new Uint8Array(sizeBytes)]).status;
  };
  assert.equal(status("GET", { origin: "http://x" }), 200);
  assert.equal(status("POST", {}), 200);
  assert.equal(status("POST", { origin: "http://x" }), 403);
  assert.equal(status("POST", { "content-type": "text/plain" }), 403);
  assert.equal(status("POST", {}, 2 * 1024 * 1024), 200);
  assert.equal(status("POST", {}, 2 * 1024 * 1024 + 1), 413);
});
