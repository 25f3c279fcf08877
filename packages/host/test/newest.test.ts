import assert from "node:assert/strict";
import { test } from "node:test";
import { keepNewest, setNewest } from "../src/newest.ts";

test("the entries that were added first go", () => {
  const names = new Set(["a", "b", "c"]);
  keepNewest(names, 3);
  assert.equal(names.size, 3);
  keepNewest(names, 1);
  assert.deepEqual([...names], ["c"]);
  keepNewest(names, 0);
  assert.equal(names.size, 0);
});

test("an entry that is set again is the newest", () => {
  const counts = new Map([
    ["a", 1],
    ["b", 2],
  ]);
  setNewest(counts, "a", 3, 2);
  setNewest(counts, "c", 4, 2);
  assert.deepEqual(
    [...counts],
    [
      ["a", 3],
      ["c", 4],
    ],
  );
});
