/** What is told of slow calls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stories } from "../../bench/stories.ts";

const call = (dueMs: number, doneMs: number) => ({ dueMs, sentMs: dueMs + 1, doneMs });

test("the slowest calls, each with what the member did meanwhile, in order", () => {
  const noted = [
    { what: "full collection", fromMs: 1010, durationMs: 12 },
    { what: "loop, TCPWRAP", fromMs: 990, durationMs: 12 },
    { what: "fdatasync, another thread", fromMs: 1024.75, durationMs: 3 },
    { what: "before", fromMs: 900, durationMs: 50 },
  ];
  const slowest = [call(1000, 1025), call(1030, 1050), call(2000, 2010), call(3000, 3005)];
  assert.deepEqual(stories(slowest, [noted], 2), [
    "25.0 ms from due to done; sent after 1.0 ms",
    "  at -10.0 ms, 2.0 ms of 12.0 ms: loop, TCPWRAP",
    "  at 10.0 ms, 12.0 ms: full collection",
    "10.0 ms from due to done; sent after 1.0 ms",
  ]);
});

test("members are told apart", () => {
  const noted = [[], [{ what: "full collection", fromMs: 1000, durationMs: 5 }]];
  assert.deepEqual(stories([call(1000, 1010)], noted, 5).slice(1), [
    "  member 1: at 0.0 ms, 5.0 ms: full collection",
  ]);
});
