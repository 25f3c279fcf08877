/** Entries as bytes, beside the same entries in a list. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import { AppliedEntries } from "../src/applied-entries.ts";

/** Around the size above which data is not copied, and that of a block. */
const SIZES = [0, 1, 100, 300, 8191, 8192, 8193, 65_536, 70_000];

test("entries of all sizes are as they were added, over many blocks, while others are dropped", () => {
  for (let seed = 1; seed <= 10; seed++) {
    const random = new SeededRandom(BigInt(seed));
    const kept = new AppliedEntries();
    const list = new Map<number, raftpb.Entry>();
    const areSmall = seed % 2 === 0;
    let first = 1 + random.below(1000);
    let next = first;
    let term = 1;
    for (let step = 0; step < 1500; step++) {
      if (random.below(50) === 0) term += 1 + random.below(1_000_000);
      const size = areSmall ? random.below(40) : SIZES[random.below(SIZES.length)];
      const data = new Uint8Array(size).fill(random.below(256));
      const entry = { type: random.below(3), term, index: next++, data };
      list.set(entry.index, { ...entry, data: data.slice() });
      kept.add(entry);
      if (random.below(300) === 0) {
        const to = first + random.below(next - first) - 1;
        kept.dropTo(to);
        for (; first <= to; first++) list.delete(first);
      }
      const index = first + random.below(next - first);
      const expected = list.get(index)!;
      assert.deepEqual(kept.entryAt(index), expected, `seed ${seed} step ${step}`);
      assert.equal(kept.termAt(index), expected.term);
      assert.equal(kept.dataBytesAt(index), expected.data.length);
    }
    for (const [index, entry] of list) assert.deepEqual(kept.entryAt(index), entry);
  }
});

test("small data is copied, so that what it was cut from can go; large data is not", () => {
  const kept = new AppliedEntries();
  const [small, large] = [new Uint8Array(100), new Uint8Array(100_000)];
  kept.add({ type: 0, term: 1, index: 1, data: small });
  kept.add({ type: 0, term: 1, index: 2, data: large });
  assert.notEqual(kept.entryAt(1).data.buffer, small.buffer);
  assert.equal(kept.entryAt(2).data, large);
});

test("after all are dropped, any index may be the first", () => {
  const kept = new AppliedEntries();
  const entry = { type: 0, term: 1, index: 5, data: new Uint8Array(3) };
  kept.add(entry);
  kept.dropTo(5);
  kept.add({ ...entry, index: 900 });
  assert.deepEqual(kept.entryAt(900), { ...entry, index: 900 });
});
