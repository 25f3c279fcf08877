import assert from "node:assert/strict";
import { test } from "node:test";
import { ageSince, humanDuration } from "../../src/registry/table.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test("Ages have kubectl's form", () => {
  for (const [ms, text] of [
    [-2 * SECOND, "<invalid>"],
    [-SECOND, "0s"],
    [0, "0s"],
    [999, "0s"],
    [119 * SECOND, "119s"],
    [2 * MINUTE, "2m"],
    [2 * MINUTE + 5 * SECOND, "2m5s"],
    [10 * MINUTE + 5 * SECOND, "10m"],
    [179 * MINUTE, "179m"],
    [3 * HOUR, "3h"],
    [3 * HOUR + 7 * MINUTE, "3h7m"],
    [8 * HOUR + 7 * MINUTE, "8h"],
    [47 * HOUR, "47h"],
    [48 * HOUR, "2d"],
    [50 * HOUR, "2d2h"],
    [8 * DAY + HOUR, "8d"],
    [729 * DAY, "729d"],
    [730 * DAY, "2y"],
    [740 * DAY, "2y10d"],
    [8 * 365 * DAY + DAY, "8y"],
  ] as const) {
    assert.equal(humanDuration(ms), text, String(ms));
  }
  assert.equal(ageSince(undefined, 0), "<unknown>");
  assert.equal(ageSince(null, 0), "<unknown>");
});
