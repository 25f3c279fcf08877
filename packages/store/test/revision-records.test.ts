/** Records that wait for a batch: what is put is found, in order, and once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { keptWrite, SeededRandom } from "@quorate/host";
import { fromLatin1, KeyValue, toLatin1 } from "@quorate/proto";
import { Bucket } from "../src/backend/backend.ts";
import { encodeRevision, RevisionRecords } from "../src/backend/revision.ts";

interface Put {
  readonly main: number;
  readonly sub: number;
  readonly tombstone: boolean;
  readonly record: Partial<KeyValue>;
}

/** Changes of ascending revisions, with values up to beyond a block. */
function drawPuts(random: SeededRandom, count: number, firstMain: number): Put[] {
  const puts: Put[] = [];
  let main = firstMain;
  let sub = 0;
  for (let i = 0; i < count; i++) {
    if (random.below(3) > 0) {
      main += 1 + random.below(2);
      sub = 0;
    } else sub += 1;
    const tombstone = random.below(5) === 0;
    const length = random.below(20) === 0 ? 70_000 : random.below(400);
    const key = fromLatin1(`key ${i}`);
    const value = new Uint8Array(length).fill(i);
    puts.push({ main, sub, tombstone, record: tombstone ? { key } : { key, value } });
  }
  return puts;
}

function check(records: RevisionRecords, puts: readonly Put[]): void {
  let sizeBytes = 0;
  const batch = Array.from(records, keptWrite);
  assert.equal(batch.length, puts.length);
  for (const [i, { main, sub, tombstone, record }] of puts.entries()) {
    const value = KeyValue.encode(record);
    const revision = encodeRevision(main, sub, tombstone);
    const key = toLatin1(Uint8Array.of(Bucket.key)) + toLatin1(revision);
    assert.equal(toLatin1(batch[i]?.key ?? new Uint8Array()), key);
    assert.deepEqual(batch[i]?.value, value);
    assert.deepEqual(records.find(main, sub), value);
    sizeBytes += revision.length + value.length;
  }
  assert.equal(records.count, puts.length);
  assert.equal(records.sizeBytes, sizeBytes);
}

test("what was added is found by its revision, and is in the batch in order", () => {
  const random = new SeededRandom(20_261_128n);
  for (let round = 0; round < 60; round++) {
    const puts = drawPuts(random, random.below(200), 1 + random.below(2 ** 31));
    const records = new RevisionRecords(Bucket.key);
    for (const { main, sub, tombstone, record } of puts) {
      const bytes = records.add(main, sub, tombstone, record);
      assert.equal(bytes, KeyValue.encode(record).length);
      assert.deepEqual(records.last(), KeyValue.encode(record));
    }
    check(records, puts);
    for (const [main, sub] of [
      [0, 0],
      [2 ** 40, 0],
      [puts[0]?.main ?? 1, 1_000_000],
    ] as const)
      assert.equal(records.find(main, sub), undefined);
  }
});

test("staged records follow those that are there, and more may follow them", () => {
  const random = new SeededRandom(20_261_129n);
  for (let round = 0; round < 60; round++) {
    const records = new RevisionRecords(Bucket.key);
    const all: Put[] = [];
    for (let part = 0; part < 4; part++) {
      const puts = drawPuts(random, random.below(80), 1 + (all.at(-1)?.main ?? 0));
      const into = part % 2 === 1 ? new RevisionRecords(Bucket.key) : records;
      for (const { main, sub, tombstone, record } of puts) into.add(main, sub, tombstone, record);
      if (into !== records) records.addAll(into);
      all.push(...puts);
    }
    check(records, all);
  }
});

test("a revision that does not ascend is a defect", () => {
  const records = new RevisionRecords(Bucket.key);
  records.add(5, 1, false, { key: fromLatin1("a") });
  for (const [main, sub] of [
    [5, 1],
    [5, 0],
    [4, 9],
  ] as const)
    assert.throws(() => records.add(main, sub, false, { key: fromLatin1("a") }), /STORE-11/);
});
