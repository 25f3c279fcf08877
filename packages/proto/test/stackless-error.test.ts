/**
 * Refusing a request takes no walk over the calls that led there: a client chooses how often it is
 * refused.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, errorOf, InvariantError, JsonError, WireError } from "@quorate/proto";

const isCall = (line: string): boolean => line.startsWith("    at ");

test("errors that say what is wrong with a request have no list of calls", () => {
  const before = Error.stackTraceLimit;
  const errors = [
    errorOf("EmptyKey"),
    new WireError("wrong wire type", 3),
    new JsonError("unexpected token"),
    new CodedError("Some", "Code", "text"),
  ];
  for (const error of errors) {
    assert.equal(error.stack?.split("\n").filter(isCall).length, 0);
    assert.match(String(error), /: ./);
  }
  assert.equal(Error.stackTraceLimit, before);
  assert.ok(new Error("another").stack?.split("\n").some(isCall));
});

test("a defect of the program has one", () => {
  assert.ok(new InvariantError("X-1", "text", "").stack?.split("\n").some(isCall));
});
