import assert from "node:assert/strict";
import { test } from "node:test";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { BriefMap, BriefSet } from "@quorate/host";

test("it is a map, in the order of additions, whatever comes and goes", () => {
  const model = new Map<number, number>();
  const map = new BriefMap<number, number>();
  for (let i = 0; i < 20_000; i++) {
    // A stock that grows past the size up to which Maps are replaced, and shrinks again.
    const stock = i < 10_000 ? i * 0.9 : 20_000 - i;
    map.set(i, i * 2);
    model.set(i, i * 2);
    for (const key of model.keys()) {
      if (model.size <= stock) break;
      assert.equal(map.delete(key), true);
      model.delete(key);
    }
    assert.equal(map.size, model.size);
    assert.equal(map.get(i - 3), model.get(i - 3));
    assert.equal(map.has(i - 3), model.has(i - 3));
    if (i % 1000 === 0) assert.deepEqual([...map], [...model]);
  }
  assert.equal(map.delete(-1), false);
  assert.deepEqual([...map.values()], [...model.values()]);
  map.clear();
  assert.equal(map.size, 0);
  assert.deepEqual([...map], []);
});

test("an iteration sees what is deleted and added meanwhile", () => {
  const map = new BriefMap<number, string>();
  for (let i = 0; i < 10; i++) map.set(i, "old");
  const seen: number[] = [];
  for (const [key] of map) {
    seen.push(key);
    if (key !== 0) continue;
    for (let i = 100; i < 300; i++) {
      map.set(i, "passing");
      map.delete(i);
    }
    map.delete(5);
    map.set(300, "new");
  }
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 6, 7, 8, 9, 300]);
});

test("what has left is garbage for the collector of young objects", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options?: { type: "minor" }) => void;
  const VALUE_BYTES = 800;
  const PASSING = 20_000;
  const UNDER_WAY = 20;
  /** Bytes that are left of entries of which nearly all have left. */
  const leftBytes = (map: Map<number, unknown> | BriefMap<number, unknown>): number => {
    for (let i = 0; i < UNDER_WAY; i++) map.set(i, undefined);
    // The map's present table grows old.
    collect();
    const before = getHeapStatistics().used_heap_size;
    for (let i = UNDER_WAY; i < PASSING; i++) {
      map.set(i, new Array(VALUE_BYTES / 8).fill(i));
      map.delete(i - UNDER_WAY);
      if (i % 2000 === 0) collect({ type: "minor" });
    }
    collect({ type: "minor" });
    collect({ type: "minor" });
    return getHeapStatistics().used_heap_size - before;
  };
  const allBytes = VALUE_BYTES * PASSING;
  const brief = leftBytes(new BriefMap());
  assert.ok(brief < allBytes / 20, `${brief} of ${allBytes} bytes are left`);
  // The reason for this class. Where it is gone, a Map will do.
  const plain = leftBytes(new Map());
  assert.ok(plain > allBytes / 4, `of a Map only ${plain} bytes are left: is BriefMap needed?`);
});

test("a set of them is a set", () => {
  const set = new BriefSet<string>();
  set.add("a");
  set.add("b");
  set.add("a");
  assert.deepEqual([set.size, [...set], set.has("a"), set.has("c")], [2, ["a", "b"], true, false]);
  assert.equal(set.delete("a"), true);
  assert.equal(set.delete("a"), false);
  for (const element of set) set.delete(element);
  set.add("c");
  set.clear();
  assert.deepEqual([...set], []);
});
