import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { SortedView } from "../../src/cacher/sorted-tree.ts";
import { SortedTree } from "../../src/cacher/sorted-tree.ts";

interface Item {
  readonly key: string;
  readonly version: number;
}

function itemsOf(view: SortedView<Item>, from = ""): Item[] {
  const items: Item[] = [];
  const cursor = view.cursor(from);
  for (let item = cursor.next(); item !== undefined; item = cursor.next()) items.push(item);
  return items;
}

const sorted = (model: ReadonlyMap<string, Item>) =>
  [...model.values()].sort((a, b) => (a.key < b.key ? -1 : 1));

for (const [name, keyCount, seed] of [
  ["few keys", 40, 1n],
  ["many keys", 4000, 2n],
] as const) {
  test(`random changes leave a tree as a map, and frozen views as they were: ${name}`, () => {
    const random = new SeededRandom(seed);
    const tree = new SortedTree<Item>();
    const model = new Map<string, Item>();
    const frozen: { view: SortedView<Item>; items: Item[] }[] = [];
    for (let version = 1; version <= 12_000; version++) {
      const key = String(random.below(keyCount)).padStart(4, "0");
      // Phases of growth and of decline, down to an empty tree.
      const grows = version % 4000 < 2500;
      if (random.below(10) < (grows ? 8 : 2)) {
        const item = { key, version };
        assert.equal(tree.set(item), model.get(key));
        model.set(key, item);
      } else {
        assert.equal(tree.delete(key), model.get(key));
        model.delete(key);
      }
      assert.equal(tree.size, model.size);
      if (version % 1500 === 0) frozen.push({ view: tree.freeze(), items: sorted(model) });
    }
    for (const { view, items } of frozen) {
      assert.deepEqual(itemsOf(view), items);
      for (const from of ["", "0", "0017", "00175", "2000", "9"]) {
        const after = items.filter(({ key }) => key >= from);
        assert.deepEqual(itemsOf(view, from), after);
        assert.equal(view.countBelow(from), items.length - after.length);
      }
      for (const item of items.slice(0, 50)) assert.equal(view.get(item.key), item);
      assert.equal(view.get("absent"), undefined);
    }
    for (const { key } of sorted(model)) assert.notEqual(tree.delete(key), undefined);
    assert.equal(tree.size, 0);
    assert.deepEqual(itemsOf(tree.freeze()), []);
  });
}

test("a tree that begins with a view does not change the view", () => {
  const tree = new SortedTree<Item>();
  for (let i = 0; i < 100; i++) tree.set({ key: String(i).padStart(3, "0"), version: 1 });
  const view = tree.freeze();
  const other = new SortedTree(view);
  for (let i = 0; i < 100; i += 2) other.delete(String(i).padStart(3, "0"));
  other.set({ key: "001", version: 2 });
  assert.equal(view.size, 100);
  assert.equal(view.get("001")?.version, 1);
  assert.equal(other.size, 50);
});
