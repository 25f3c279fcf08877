/** The interval tree and the group on it, against lists that are searched from end to end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { KeyRange } from "@quorate/store";
import fc from "fast-check";
import { IntervalTree } from "../src/watch/interval-tree.ts";
import { WatcherGroup } from "../src/watch/watcher-group.ts";

const seed = 20_260_401;
const key = fc.string({ unit: fc.constantFrom("a", "b", "c", "\xff", "\0"), maxLength: 3 });
const range: fc.Arbitrary<KeyRange> = fc.oneof(
  key.map((k): KeyRange => ({ single: true, key: k })),
  fc
    .tuple(key, fc.option(key, { nil: undefined }))
    .map(([from, to]): KeyRange => ({ single: false, key: from, to })),
);

const holds = (one: KeyRange, k: string): boolean =>
  one.single ? one.key === k : one.key <= k && (one.to === undefined || k < one.to);

test("the tree finds what a list finds, while ranges come and go", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(key, fc.option(key, { nil: undefined }), fc.boolean()), { maxLength: 120 }),
      fc.array(key),
      (steps, probes) => {
        const tree = new IntervalTree<string>();
        const list = new Map<string, { from: string; to: string | undefined }>();
        for (const [from, to, remove] of steps) {
          const name = `${from}|${to}`;
          if (list.has(name)) {
            assert.equal(tree.get(from, to), name);
            if (!remove) continue;
            list.delete(name);
            tree.delete(from, to);
          } else {
            assert.equal(tree.get(from, to), undefined);
            list.set(name, { from, to });
            tree.add(from, to, name);
          }
          assert.equal(tree.size, list.size);
        }
        for (const probe of probes) {
          const found: string[] = [];
          tree.stab(probe, (name) => found.push(name));
          const expected = [...list]
            .filter(([, { from, to }]) => from <= probe && (to === undefined || probe < to))
            .map(([name]) => name);
          assert.deepEqual(found.sort(), expected.sort());
        }
      },
    ),
    { seed, numRuns: 400 },
  );
});

test("the tree stays low when ranges come in order, and when half of them go again", () => {
  const tree = new IntervalTree<number>();
  const name = (i: number) => String(i).padStart(6, "0");
  for (let i = 0; i < 10_000; i++) tree.add(name(i), name(i + 1), i);
  assert.ok(tree.height <= 1.45 * Math.log2(10_000), `height ${tree.height}`);
  for (let i = 0; i < 10_000; i += 2) tree.delete(name(i), name(i + 1));
  assert.ok(tree.height <= 1.45 * Math.log2(5000) + 1, `height ${tree.height}`);
  const found: number[] = [];
  tree.stab(name(4999), (i) => found.push(i));
  tree.stab(name(5000), (i) => found.push(i));
  assert.deepEqual(found, [4999]);
});

test("whatever order ranges come and go in, the tree is low and has those that are left", () => {
  const random = new SeededRandom(34n);
  const bound = (size: number) => 1.45 * Math.log2(size + 2);
  for (const order of ["random", "falling"] as const) {
    const tree = new IntervalTree<number>();
    const there = new Set<number>();
    const ends = (i: number): [string, string] => {
      const from = String(i).padStart(4, "0");
      return [from, `${from}5`];
    };
    const check = (probe: number) => {
      assert.equal(tree.size, there.size);
      assert.ok(tree.height <= bound(there.size), `height ${tree.height} of ${there.size}`);
      const found: number[] = [];
      tree.stab(ends(probe)[0], (i) => found.push(i));
      assert.deepEqual(found, there.has(probe) ? [probe] : []);
    };
    const shuffled = Array.from({ length: 400 }, (_, i) => 399 - i);
    const shuffle = () => {
      for (let i = shuffled.length - 1; i > 0; i--) {
        const j = random.below(i + 1);
        [shuffled[i], shuffled[j]] = [shuffled[j], shuffled[i]];
      }
    };
    if (order === "random") shuffle();
    for (const i of shuffled) {
      tree.add(...ends(i), i);
      there.add(i);
      check(random.below(400));
    }
    shuffle();
    for (const i of shuffled) {
      tree.delete(...ends(i));
      there.delete(i);
      check(i);
      const [some] = there;
      if (some !== undefined) check(some);
    }
    assert.throws(() => tree.delete("0000", "00005"), RangeError);
  }
});

test("those who stay of a crowd are visited as before, and one that comes when all had gone", () => {
  for (const range of [
    { single: true, key: "k" },
    { single: false, key: "k", to: "l" },
  ] as const) {
    const group = new WatcherGroup<{ range: KeyRange }>();
    const [one, two, three] = [{ range }, { range }, { range }];
    const visited = () => {
      const found: { range: KeyRange }[] = [];
      group.visit("k", (watcher) => found.push(watcher));
      return found;
    };
    for (const watcher of [one, two, three]) group.add(watcher);
    group.delete(two);
    assert.deepEqual(visited(), [one, three]);
    group.delete(one);
    assert.deepEqual(visited(), [three]);
    group.delete(three);
    assert.deepEqual(visited(), []);
    group.add(two);
    assert.ok(visited().length === 1 && visited()[0] === two);
  }
});

test("a group visits each watcher of a key once, however many watch the same", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(range, fc.nat(30)), { maxLength: 60 }),
      fc.array(key),
      (steps, probes) => {
        const group = new WatcherGroup<{ range: KeyRange }>();
        const list: { range: KeyRange }[] = [];
        for (const [one, at] of steps) {
          if (at < list.length && at % 3 === 0) group.delete(list.splice(at, 1)[0]);
          else {
            const watcher = { range: one };
            list.push(watcher);
            group.add(watcher);
          }
          assert.equal(group.size, list.length);
        }
        for (const probe of probes) {
          const found: { range: KeyRange }[] = [];
          group.visit(probe, (watcher) => found.push(watcher));
          assert.equal(new Set(found).size, found.length);
          assert.deepEqual(
            new Set(found),
            new Set(list.filter((watcher) => holds(watcher.range, probe))),
          );
        }
      },
    ),
    { seed, numRuns: 400 },
  );
});
