/** Quantities and times, beside what Kubernetes 1.36 makes of the same texts. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatTime, parseTime } from "../../src/codec/go-time.ts";
import { canonicalQuantity, quantityNumber } from "../../src/meta/quantity.ts";

describe("quantities", () => {
  const cases: readonly (readonly [text: string, canonical: string])[] = [
    ["0", "0"],
    ["00", "0"],
    ["-0", "0"],
    ["1", "1"],
    ["+1", "+1"],
    ["1000", "1k"],
    ["1000m", "1"],
    ["1500m", "1500m"],
    ["0.5", "500m"],
    ["1.5", "1500m"],
    ["1.500", "1.500"],
    [".5", "500m"],
    ["5.", "5."],
    ["-1.5Gi", "-1536Mi"],
    ["1024Ki", "1Mi"],
    ["12Mi", "12Mi"],
    ["8Mi", "8Mi"],
    ["1023", "1023"],
    ["0.1Ki", "102400m"],
    ["1e3", "1e3"],
    ["1E3", "1E3"],
    ["12e2", "1200"],
    ["100M", "100M"],
    ["1E", "1E"],
    ["0.0000000001", "1n"],
    ["8Ei", "9223372036854775807"],
    ["100000000000000000000", "100E"],
    [" 1 ", "1"],
  ];
  for (const [text, canonical] of cases)
    it(`${text} is ${canonical}`, () => {
      assert.equal(canonicalQuantity(text), canonical);
    });

  for (const text of [
    "",
    "a",
    "1x",
    "1..2",
    "--1",
    "1 2",
    "1e",
    "1eK",
    `1${"0".repeat(300)}`,
    "1e99999",
  ])
    it(`${JSON.stringify(text.slice(0, 8))} is refused`, () => {
      assert.throws(() => canonicalQuantity(text), SyntaxError);
    });
});

it("quantities are numbers", () => {
  const cases = {
    "8Gi": 2 ** 33,
    "1.5Ki": 1536,
    "1500m": 1.5,
    "-2k": -2000,
    "1e3": 1000,
    ".5": 0.5,
  };
  for (const [text, number] of Object.entries(cases)) assert.equal(quantityNumber(text), number);
  assert.throws(() => quantityNumber("much"), SyntaxError);
});

describe("times", () => {
  it("are UTC in whole seconds, or in microseconds", () => {
    const cases: readonly (readonly [string, "seconds" | "micros", string | null])[] = [
      ["2026-11-22T23:00:00Z", "seconds", "2026-11-22T23:00:00Z"],
      ["2026-11-22T23:00:00.987654321+02:30", "seconds", "2026-11-22T20:30:00Z"],
      ["2026-11-22T23:00:00.123456-01:00", "micros", "2026-11-23T00:00:00.123456Z"],
      ["2024-02-29T00:00:00Z", "seconds", "2024-02-29T00:00:00Z"],
      ["0001-01-01T00:00:00Z", "seconds", null],
      ["0001-01-01T00:00:01Z", "seconds", "0001-01-01T00:00:01Z"],
    ];
    for (const [text, unit, expected] of cases)
      assert.equal(formatTime(parseTime(text, unit), unit), expected, text);
  });

  it("that do not exist are refused with Go's text", () => {
    const cases: readonly (readonly [text: string, error: string])[] = [
      ["2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range'],
      ["2026-02-29T00:00:00Z", 'parsing time "2026-02-29T00:00:00Z": day out of range'],
      ["2026-01-01T24:00:00Z", 'parsing time "2026-01-01T24:00:00Z": hour out of range'],
      ["2026-01-01T00:00:00Zx", 'parsing time "2026-01-01T00:00:00Zx": extra text: "x"'],
      ["", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'],
    ];
    for (const [text, message] of cases)
      assert.throws(() => parseTime(text, "seconds"), { message });
  });
});
