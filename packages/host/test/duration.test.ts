/** Go's durations, read and written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDurationMs, formatDurationNs, parseDuration } from "@quorate/host";

test("durations are read as Go reads them", () => {
  const read: [string, number][] = [
    ["0", 0],
    ["5s", 5000],
    ["1h30m", 5_400_000],
    ["100ms", 100],
    ["1.5s", 1500],
    [".5s", 500],
    ["1.s", 1000],
    ["-1m", -60_000],
    ["+2h0m0s", 7_200_000],
    ["250us", 0.25],
    ["250µs", 0.25],
    ["1ns", 1e-6],
    ["1m1ms", 60_001],
  ];
  for (const [text, ms] of read) assert.equal(parseDuration(text), ms, text);
});

test("a text that is no duration is refused with Go's message", () => {
  assert.deepEqual(parseDuration("5"), {
    code: "MissingUnit",
    message: 'time: missing unit in duration "5"',
  });
  assert.deepEqual(parseDuration("5 s"), {
    code: "UnknownUnit",
    message: 'time: unknown unit " s" in duration "5 s"',
  });
  for (const text of ["", "s", "-", "1h-5m", "--5s", "x5s", "1e3s", "9999999999h"]) {
    assert.equal(typeof parseDuration(text), "object", text);
  }
  const message = 'time: invalid duration "9999999999h"';
  assert.deepEqual(parseDuration("9999999999h"), { code: "Invalid", message });
});

test("durations are written as Go writes them, and read back", () => {
  const written: [bigint, string][] = [
    [0n, "0s"],
    [1n, "1ns"],
    [999n, "999ns"],
    [1500n, "1.5µs"],
    [967_713n, "967.713µs"],
    [2_978_392n, "2.978392ms"],
    [1_000_000_000n, "1s"],
    [60_250_000_000n, "1m0.25s"],
    [3_661_000_000_000n, "1h1m1s"],
    [7_200_000_000_000n, "2h0m0s"],
    [-60_000_000_000n, "-1m0s"],
  ];
  for (const [ns, text] of written) {
    assert.equal(formatDurationNs(ns), text);
    assert.equal(formatDurationMs(Number(ns) / 1e6), text);
    if (ns === 0n) continue;
    const read = parseDuration(text);
    assert.ok(typeof read === "number" && Math.abs(read * 1e6 - Number(ns)) < 0.5, text);
  }
});
