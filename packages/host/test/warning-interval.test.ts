import assert from "node:assert/strict";
import { test } from "node:test";
import { WarningInterval } from "../src/warning-interval.ts";

test("one warning passes in an interval, and the next counts those omitted", () => {
  const interval = new WarningInterval(1000);
  assert.deepEqual(
    [0, 1, 999, 1000, 1001, 2500, 9000].map((ms) => interval.pass(ms)),
    [0, undefined, undefined, 2, undefined, 1, 0],
  );
});
