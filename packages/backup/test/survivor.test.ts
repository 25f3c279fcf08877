/** Whose data a cluster goes on with. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { survivorOf } from "../src/survivor.ts";

test("the survivor is who has both the highest term and the highest index", () => {
  const [a, b, c] = [
    { term: 2, index: 9 },
    { term: 2, index: 10 },
    { term: 3, index: 9 },
  ];
  assert.equal(survivorOf([a]), a);
  assert.equal(survivorOf([a, b]), b);
  assert.equal(survivorOf([c, b]), undefined);
  assert.equal(survivorOf([]), undefined);
});
