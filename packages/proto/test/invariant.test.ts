import assert from "node:assert/strict";
import { test } from "node:test";
import { type Assert, assertOf, InvariantError, violatedOf } from "../src/invariant.ts";
import { CodedError } from "../src/wire/coded-error.ts";

const list = { "DEMO-1": "numbers are positive" } as const;
const check: Assert<keyof typeof list> = assertOf(list);

test("a condition that holds passes, and one that does not throws the numbered error", () => {
  check(true, "DEMO-1");
  assert.throws(() => check(false, "DEMO-1"), {
    name: "InvariantError",
    code: "DEMO-1",
    message: "DEMO-1: numbers are positive",
  });
  assert.throws(() => check(false, "DEMO-1", "it is -1"), {
    message: "DEMO-1: numbers are positive (it is -1)",
  });
  assert.throws(
    () => violatedOf(list)("DEMO-1", "it is -2"),
    (error) => error instanceof InvariantError && error instanceof CodedError,
  );
});

test("an error keeps its cause, and has none where none was named", () => {
  class DemoError extends CodedError<"Demo"> {}
  const cause = new Error("first");
  assert.equal(new DemoError("DemoError", "Demo", "second", cause).cause, cause);
  assert.ok(!("cause" in new InvariantError("DEMO-1", "text", "")));
});
