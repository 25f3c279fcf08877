import assert from "node:assert/strict";
import { test } from "node:test";
import { outdated } from "../../scripts/gen-proto.ts";

test("the generated code is what scripts/gen-proto.ts writes today", () => {
  assert.deepEqual(outdated(), []);
});
