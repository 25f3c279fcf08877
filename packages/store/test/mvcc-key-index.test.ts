import assert from "node:assert/strict";
import { test } from "node:test";
import { compare } from "@quorate/proto";
import { compareRevisions, decodeRevision, encodeRevision } from "../src/backend/revision.ts";
import { KeyIndex, LATEST, NONE } from "../src/mvcc/key-index.ts";

/** put 2.0, put 3.0, delete 5.1, put 7.0, put 7.2, delete 9.0 */
function sample(): KeyIndex {
  const index = KeyIndex.put(2, 0, false);
  index.put(3, 0, true);
  index.delete(5, 1);
  index.put(7, 0, false);
  index.put(7, 2, false);
  index.delete(9, 0);
  return index;
}

/** What a read finds at each revision from 1 to 10: "main.sub" or "-". */
function reads(index: KeyIndex): string {
  const found: string[] = [];
  for (let at = 1; at <= 10; at++) {
    const place = index.find(at);
    found.push(place === NONE ? "-" : `${index.mainAt(place)}.${index.subAt(place)}`);
  }
  return found.join(" ");
}

function compactAll(index: KeyIndex, at: number, most = 1000): { dropped: string; empty: boolean } {
  const dropped: string[] = [];
  const empty = index.compact(at, most, (main, sub, tombstone) =>
    dropped.push(`${main}.${sub}${tombstone ? "t" : ""}`),
  );
  return { dropped: dropped.join(" "), empty };
}

test("a read finds the newest put at or before its revision, and nothing after a deletion", () => {
  assert.equal(reads(sample()), "- 2.0 3.0 3.0 - - 7.2 7.2 - -");
});

test("the index counts the events after a revision, in each of its forms", () => {
  const counts = (index: KeyIndex) =>
    Array.from({ length: 10 }, (_, at) => index.changesAfter(at)).join(" ");
  const index = KeyIndex.put(2, 0, false);
  assert.equal(counts(index), "1 1 0 0 0 0 0 0 0 0");
  const deleted = KeyIndex.put(2, 0, false);
  deleted.delete(5, 0);
  assert.equal(counts(deleted), "2 2 1 1 1 0 0 0 0 0");
  index.put(3, 0, true);
  assert.equal(counts(index), "2 2 1 0 0 0 0 0 0 0");
  assert.equal(counts(sample()), "6 6 5 4 4 3 3 1 1 0");
});

test("the index knows created revision, version and lease of the last generation", () => {
  const index = KeyIndex.put(4, 3, true);
  assert.deepEqual(
    [index.created, index.version, index.leased, index.exists, index.sub],
    [4, 1, true, true, 3],
  );
  index.put(6, 0, false);
  assert.deepEqual([index.created, index.version, index.leased, index.main], [4, 2, false, 6]);
  index.delete(8, 1);
  assert.deepEqual([index.exists, index.leased, index.main], [false, false, 8]);
  index.put(8, 2, false);
  assert.deepEqual([index.created, index.version, index.exists], [8, 1, true]);
  assert.equal(index.find(8), LATEST);
});

test("compaction drops what no read at its revision or later can find", () => {
  const table: readonly [at: number, dropped: string, empty: boolean][] = [
    [1, "", false],
    [2, "", false],
    [3, "2.0", false],
    [4, "2.0", false],
    [5, "2.0 3.0", false],
    [6, "2.0 3.0 5.1t", false],
    [7, "2.0 3.0 5.1t 7.0", false],
    [8, "2.0 3.0 5.1t 7.0", false],
    [9, "2.0 3.0 5.1t 7.0 7.2", false],
    [10, "2.0 3.0 5.1t 7.0 7.2 9.0t", true],
  ];
  for (const [at, dropped, empty] of table) {
    const index = sample();
    assert.deepEqual(compactAll(index, at), { dropped, empty }, `at ${at}`);
    if (!empty) {
      // Reads at the revision and after it find what they found before, and a second run has
      // nothing to do.
      assert.equal(
        reads(index)
          .split(" ")
          .slice(at - 1)
          .join(" "),
        reads(sample())
          .split(" ")
          .slice(at - 1)
          .join(" "),
      );
      assert.deepEqual(compactAll(index, at), { dropped: "", empty: false });
    }
  }
});

test("compaction in pieces drops the same, the oldest first", () => {
  for (const most of [1, 2, 3]) {
    const index = sample();
    const dropped: string[] = [];
    for (;;) {
      const piece = compactAll(index, 10, most);
      assert.ok(piece.dropped.split(" ").length <= most);
      if (piece.dropped !== "") dropped.push(piece.dropped);
      if (piece.empty) break;
    }
    assert.equal(dropped.join(" "), "2.0 3.0 5.1t 7.0 7.2 9.0t");
  }
});

test("a put is what a hash at a revision covers only if it is what a read finds", () => {
  const index = sample();
  assert.equal(index.isValueAt(3, 0, 4), true);
  assert.equal(index.isValueAt(2, 0, 4), false);
  assert.equal(index.isValueAt(5, 1, 5), false);
  assert.equal(index.isValueAt(7, 0, 7), false);
  assert.equal(index.isValueAt(7, 2, 7), true);
});

test("changes out of order and deletions of nothing break an invariant", () => {
  const index = KeyIndex.put(5, 1, false);
  assert.throws(() => index.put(5, 1, false), /MVCC-1/);
  assert.throws(() => index.put(4, 9, false), /MVCC-1/);
  index.delete(6, 0);
  assert.throws(() => index.delete(7, 0), /MVCC-2/);
});

test("revision keys are etcd's, in order, and nothing else decodes", () => {
  assert.deepEqual(
    [...encodeRevision(0x0102, 3, false)],
    [0, 0, 0, 0, 0, 0, 1, 2, 0x5f, 0, 0, 0, 0, 0, 0, 0, 3],
  );
  assert.deepEqual(
    [...encodeRevision(2, 0, true)],
    [0, 0, 0, 0, 0, 0, 0, 2, 0x5f, 0, 0, 0, 0, 0, 0, 0, 0, 0x74],
  );
  const numbers = [0, 1, 255, 256, 2 ** 31, 2 ** 32, 2 ** 40 + 7, Number.MAX_SAFE_INTEGER];
  const all = numbers.flatMap((main) =>
    numbers.map((sub) => ({ main, sub, tombstone: (main + sub) % 2 === 1 })),
  );
  for (const one of all)
    assert.deepEqual(decodeRevision(encodeRevision(one.main, one.sub, one.tombstone)), one);
  for (const [a, b] of all.slice(1).map((one, i) => [all[i], one] as const)) {
    assert.equal(
      compare(encodeRevision(a.main, a.sub, false), encodeRevision(b.main, b.sub, false)),
      -1,
    );
    assert.ok(compareRevisions(a.main, a.sub, b.main, b.sub) < 0);
  }
  const good = encodeRevision(2, 0, true);
  const broken = (at: number, byte: number): Uint8Array => good.with(at, byte);
  const bad = [
    broken(8, 0),
    broken(17, 0),
    broken(0, 1),
    broken(1, 0x20),
    broken(9, 0x80),
    broken(10, 0x20),
    good.slice(0, 16),
    new Uint8Array(19),
  ];
  for (const bytes of bad) assert.equal(decodeRevision(bytes), undefined, String(bytes));
});
