/** Sets of field paths against sets of texts. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Dice } from "../../../../test/support/random.ts";
import {
  differenceOf,
  type FieldSet,
  fieldSetFromJson,
  fieldSetOf,
  fieldSetToJson,
  hasPath,
  intersectionOf,
  isEmptySet,
  pathsOf,
  recursiveDifferenceOf,
  unionOf,
} from "../../src/apply/field-set.ts";
import { pathText } from "../../src/apply/path-element.ts";
import { randomFieldsV1 } from "./support/random-values.ts";

const NAMES = ["f:a", "f:b", 'k:{"name":"a"}', "v:1"];

function randomPath(dice: Dice): string[] {
  return Array.from({ length: 1 + dice.below(3) }, () => dice.pick(NAMES));
}

/** A set and its model: the texts of its paths. */
function randomSet(dice: Dice): [FieldSet, Set<string>] {
  const paths = Array.from({ length: dice.below(8) }, () => randomPath(dice));
  return [fieldSetOf(...paths), new Set(paths.map(pathText))];
}

function textsOf(set: FieldSet): string[] {
  return pathsOf(set).map(pathText).sort();
}

test("operations on field sets are those of sets", () => {
  for (let seed = 0; seed < 500; seed++) {
    const dice = new Dice(seed);
    const [a, inA] = randomSet(dice);
    const [b, inB] = randomSet(dice);
    const check = (set: FieldSet, model: Set<string>, what: string): void => {
      assert.deepEqual(textsOf(set), [...model].sort(), `seed ${seed}: ${what}`);
      assert.equal(isEmptySet(set), model.size === 0);
    };
    check(unionOf(a, b), new Set([...inA, ...inB]), "union");
    check(intersectionOf(a, b), new Set([...inA].filter((path) => inB.has(path))), "intersection");
    check(differenceOf(a, b), new Set([...inA].filter((path) => !inB.has(path))), "difference");
    const below = [...inA].filter((path) => ![...inB].some((root) => isAtOrBelow(path, root)));
    check(recursiveDifferenceOf(a, b), new Set(below), "recursive difference");
    for (const path of pathsOf(a)) assert.ok(hasPath(a, path));
  }
});

/** The texts of steps are no prefixes of one another. */
function isAtOrBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}.`) || path.startsWith(`${root}[`);
}

test("fieldsV1 survive a round trip and have one form", () => {
  for (let seed = 0; seed < 300; seed++) {
    const json = randomFieldsV1(new Dice(seed));
    let set: FieldSet;
    try {
      set = fieldSetFromJson(json as never);
    } catch {
      continue;
    }
    const written = fieldSetToJson(set);
    const again = fieldSetToJson(fieldSetFromJson(written));
    assert.equal(JSON.stringify(again), JSON.stringify(written), `seed ${seed}`);
  }
});

test("steps of fieldsV1 are in Go's order", () => {
  const json = {
    "v:10": {},
    "i:2": {},
    "v:9": {},
    'v:"a"': {},
    'k:{"name":"b"}': { ".": {}, "f:x": {} },
    'k:{"name":"a"}': {},
    "f:\u{1f600}": {},
    "f:\uff5e": {},
    "f:b": {},
    "x:unknown": {},
  };
  const order = Object.keys(fieldSetToJson(fieldSetFromJson(json)));
  assert.deepEqual(order, [
    "f:b",
    "f:\uff5e",
    "f:\u{1f600}",
    'k:{"name":"a"}',
    'k:{"name":"b"}',
    "v:9",
    "v:10",
    'v:"a"',
    "i:2",
  ]);
});

test("malformed fieldsV1 are errors", () => {
  for (const key of ["f", "ab", "i:x", "k:[]", "v:{"]) {
    assert.throws(() => fieldSetFromJson({ [key]: {} }), Error, key);
  }
  assert.throws(() => fieldSetFromJson({ "f:a": 1 }), /expected an object/);
  let deep: Record<string, unknown> = {};
  for (let depth = 0; depth < 1100; depth++) deep = { "f:a": deep };
  assert.throws(() => fieldSetFromJson(deep as never), /max depth/);
});
