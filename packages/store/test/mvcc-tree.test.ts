import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyTree, LEAF_KEYS } from "../src/mvcc/key-tree.ts";
import { Prng } from "./mvcc-history.ts";

/** Keys that a tree holds in a range. */
function keysOf(tree: KeyTree<number>, from = "", to?: string): string[] {
  const keys: string[] = [];
  tree.scan(from, to, (key) => {
    keys.push(key);
    return true;
  });
  return keys;
}

test("a tree equals a sorted map under random changes, across many leaves and branches", () => {
  for (let seed = 1; seed <= 8; seed++) {
    const prng = new Prng(seed);
    // The second half has some 30 branches.
    const tree = seed <= 4 ? new KeyTree<number>() : new KeyTree<number>(8, 8);
    const model = new Map<string, number>();
    const keyOf = (n: number): string =>
      seed % 2 === 0 ? String(n).padStart(5, "0") : n.toString(2);
    const space = 12 * LEAF_KEYS;
    for (let step = 0; step < 30_000; step++) {
      // Grow, then shrink, then grow again, so that leaves split and join.
      const growing = Math.floor(step / 10_000) % 2 === 0;
      // Some keys go behind all others.
      const key = prng.chance(3) ? `z${prng.below(space)}` : keyOf(prng.below(space));
      // A key that was looked for in vain is often added next, or after a change to its leaf.
      if (prng.chance(50)) assert.equal(tree.get(key), model.get(key));
      if (prng.chance(20)) {
        const other = keyOf(prng.below(space));
        tree.set(other, -step);
        model.set(other, -step);
      }
      if (prng.chance(growing ? 75 : 25)) {
        tree.set(key, step);
        model.set(key, step);
      } else {
        assert.equal(tree.delete(key), model.delete(key), `seed ${seed} step ${step}`);
      }
      if (prng.chance(10)) {
        let probe = keyOf(prng.below(space));
        tree.scanPart(probe, undefined, 5, (next) => {
          assert.equal(tree.getNext(probe), model.get(probe));
          probe = next;
          return true;
        });
        assert.equal(tree.getNext(probe), model.get(probe));
      }
      if (step % 50 === 0) {
        const probe = keyOf(prng.below(space));
        assert.equal(tree.get(probe), model.get(probe));
      }
      if (step % 3000 === 2999) {
        const sorted = [...model.keys()].sort();
        assert.equal(tree.size, sorted.length);
        assert.deepEqual(keysOf(tree), sorted);
        for (let i = 0; i < 20; i++) {
          const [from, to] = [
            keyOf(prng.below(space)),
            prng.chance(80) ? keyOf(prng.below(space)) : undefined,
          ];
          assert.deepEqual(
            keysOf(tree, from, to),
            sorted.filter((key) => key >= from && (to === undefined || key < to)),
          );
        }
      }
    }
    for (const key of [...model.keys()]) tree.delete(key);
    assert.deepEqual(keysOf(tree), []);
    assert.equal(tree.size, 0);
  }
});

test("a key that was missed finds its place after keys were added behind all others", () => {
  const tree = new KeyTree<number>();
  tree.set("a", 1);
  assert.equal(tree.get("c"), undefined);
  for (const key of ["b", "d", "c"]) tree.set(key, 2);
  assert.deepEqual(keysOf(tree), ["a", "b", "c", "d"]);
});

test("keys in ascending and in descending order are all found", () => {
  const count = 5 * LEAF_KEYS + 3;
  const keys = Array.from({ length: count }, (_, i) => String(i).padStart(6, "0"));
  for (const order of [keys, keys.toReversed()]) {
    const tree = new KeyTree<number>();
    for (const key of order) tree.set(key, Number(key));
    assert.deepEqual(keysOf(tree), keys);
    assert.ok(keys.every((key) => tree.get(key) === Number(key)));
    // In ascending order leaves fill up; in any other they are at least half full.
    const full = Math.ceil(count / LEAF_KEYS);
    assert.ok(tree.leafCount <= (order === keys ? full : 2 * full), `${tree.leafCount} leaves`);
    for (const key of order.slice(0, -10)) tree.delete(key);
    assert.equal(tree.leafCount, 1);
  }
});

test("in ascending order branches fill up too, and they join when their leaves go", () => {
  const keys = Array.from({ length: 1000 }, (_, i) => String(i).padStart(4, "0"));
  for (const order of [keys, keys.toReversed()]) {
    const tree = new KeyTree<number>(8, 8);
    for (const key of order) tree.set(key, Number(key));
    assert.deepEqual(keysOf(tree), keys);
    assert.deepEqual(keysOf(tree, "0100", "0900"), keys.slice(100, 900));
    if (order === keys) assert.equal(tree.leafCount, 125);
    let from: string | undefined = "";
    const parts: string[] = [];
    while (from !== undefined)
      from = tree.scanPart(from, undefined, 7, (key) => parts.push(key) > 0);
    assert.deepEqual(parts, keys);
    for (const key of order.slice(0, -2)) assert.equal(tree.delete(key), true);
    assert.deepEqual(keysOf(tree), order.slice(-2).sort());
    assert.ok(tree.leafCount <= 3, `${tree.leafCount} leaves`);
  }
});

test("a scan ends where its visitor says, and an end at or below its start finds nothing", () => {
  const tree = new KeyTree<number>();
  for (let i = 0; i < 1000; i++) tree.set(String(i).padStart(4, "0"), i);
  const seen: number[] = [];
  tree.scan("0500", undefined, (_key, value) => seen.push(value) < 3);
  assert.deepEqual(seen, [500, 501, 502]);
  assert.deepEqual(keysOf(tree, "0500", "0500"), []);
  assert.deepEqual(keysOf(tree, "0500", "0100"), []);
  assert.deepEqual(keysOf(tree, "9", undefined), []);
});

test("an absent key is neither found nor deleted, and setting again replaces", () => {
  const tree = new KeyTree<number>();
  tree.set("b", 1);
  tree.set("b", 2);
  assert.equal(tree.get("b"), 2);
  assert.equal(tree.size, 1);
  assert.equal(tree.get("a"), undefined);
  assert.equal(tree.delete("a"), false);
});

test("a leaf that is nearly empty stays beside a full one", () => {
  const tree = new KeyTree<number>();
  for (let i = 0; i < LEAF_KEYS + 2; i++) tree.set(String(i).padStart(4, "0"), i);
  assert.equal(tree.leafCount, 2);
  assert.equal(tree.delete(String(LEAF_KEYS + 1).padStart(4, "0")), true);
  // Joined, they would be more than a leaf may have.
  assert.equal(tree.leafCount, 2);
});
