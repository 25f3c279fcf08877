/**
 * Refusing a request takes no walk over the calls that led there: a client chooses how often it is
 * refused.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, errorOf, InvariantError } from "@quorate/proto";

const isCall = (line: string): boolean => line.startsWith("    at ");

test("a refusal has no list of calls", () => {
  const before = Error.stackTraceLimit;
  const error = errorOf("EmptyKey");
  assert.equal(error.stack?.split("\n").filter(isCall).length, 0);
  assert.match(String(error), /: ./);
  assert.equal(Error.stackTraceLimit, before);
});

test("errors that a program catches have one", () => {
  for (const error of [
    new CodedError("Some", "Code", "text"),
    new InvariantError("X-1", "text", ""),
  ])
    assert.ok(error.stack?.split("\n").some(isCall), error.name);
});
