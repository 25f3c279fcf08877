/** Lists of entity tags, whatever stands between them (docs/operate/security/linear.md). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { growthOf } from "@quorate/host/testing";
import { Preconditions } from "../src/preconditions.ts";

const conditions = (text: string): Preconditions =>
  new Preconditions({ headers: new Map([["if-match", text]]) });

test("blanks and empty elements do not count", () => {
  assert.deepEqual(conditions(' \t"7",, 8 ,W/"9",').candidates, [7, 8]);
  for (const text of ["", ",", '"7" 8', '"7', "x", '"7"x'])
    assert.throws(() => conditions(text), /if-match/, text);
});

test("the cost grows with the length", () => {
  for (const filler of [" ", "\t", ",", '"', '"x', "1", "W/", ' "'])
    for (const end of ["", "x", "1"]) {
      const run = (text: string): void => {
        try {
          conditions(text);
        } catch {
          // The text is no list.
        }
      };
      const growth = growthOf((size) => `${filler.repeat(size)}${end}`, run, 1000);
      assert.ok(growth < 1.5, `${JSON.stringify(filler + end)}: ${growth}`);
    }
});
