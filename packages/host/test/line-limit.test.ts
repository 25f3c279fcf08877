/** The rate limit of log lines from unknown clients. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LineLimit } from "@quorate/host";

test("twenty lines at once, then two a second; the next one counts those dropped", () => {
  const limit = new LineLimit();
  const written = (nowMs: number, times: number) =>
    Array.from({ length: times }, () => limit.allow(nowMs)).filter((one) => one !== undefined);
  assert.equal(written(0, 1000).length, 20);
  assert.deepEqual(written(1000, 10), [{ "omitted-lines": 980 }, {}]);
  assert.deepEqual(written(60_000, 1), [{ "omitted-lines": 8 }]);
});
