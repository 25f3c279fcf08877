import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpHandler } from "../src/http.ts";
import { wholeBody } from "../src/http-exchange.ts";
import { MemoryExchange } from "../testing/memory-exchange.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const echo: HttpHandler = ({ method, path, body }) => ({
  status: 200,
  headers: { "content-type": "text/plain" },
  body: `${method} ${path} ${new TextDecoder().decode(body)}`,
});
const never = () => assert.fail("the handler did not throw");

test("a handler of whole bodies gets the pieces joined", () => {
  const exchange = new MemoryExchange({ method: "POST", path: "/a" });
  exchange.serve(wholeBody(echo, 6, never), [bytes("one"), bytes("two")]);
  assert.equal(exchange.text, "POST /a onetwo");
  assert.equal(exchange.heldBytes, 6);
  assert.equal(exchange.state, "ended");
});

test("a body beyond the limit gets 413, and one without memory 503; the rest is dropped", () => {
  const long = new MemoryExchange({ path: "/" });
  long.serve(wholeBody(echo, 5, never), [bytes("one"), bytes("two"), bytes("three")]);
  assert.equal(long.status, 413);
  const poor = new MemoryExchange({ path: "/" });
  poor.holdBudgetBytes = 5;
  poor.serve(wholeBody(echo, 100, never), [bytes("one"), bytes("two"), bytes("three")]);
  assert.equal(poor.status, 503);
  assert.equal(poor.heldBytes, 3);
});

test("what a handler throws, at once or later, becomes 500 and is reported", async () => {
  const reported: unknown[] = [];
  const later: HttpHandler = async () => Promise.reject(new Error("later"));
  const atOnce: HttpHandler = () => {
    throw new Error("at once");
  };
  for (const handler of [atOnce, later]) {
    const exchange = new MemoryExchange({ path: "/" });
    exchange.serve(wholeBody(handler, 1, (_, error) => reported.push(String(error))));
    await exchange.done;
    assert.equal(exchange.status, 500);
  }
  assert.deepEqual(reported, ["Error: at once", "Error: later"]);
});
