/** The cache of records: what was read lately is found, and no more is kept than the bound. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_CACHED_RECORD_BYTES, RecordCache } from "../src/mvcc/state.ts";

test("what is read again stays, what is not goes, and the bound holds", () => {
  const cache = new RecordCache(100_000);
  const records = Array.from({ length: 1000 }, (_, i) => new Uint8Array(1000).fill(i));
  cache.add(1, 0, records[1]);
  for (let i = 2; i < 1000; i++) {
    cache.add(i, 0, records[i]);
    assert.equal(cache.get(1, 0), records[1]);
    assert.equal(cache.get(i, 0), records[i]);
    assert.ok(cache.sizeBytes <= 100_000, `${cache.sizeBytes} bytes`);
  }
  assert.equal(cache.get(2, 0), undefined);
  assert.ok(cache.sizeBytes > 40_000);
});

test("changes of one transaction keep apart, and what does not fit is not kept", () => {
  const cache = new RecordCache();
  const record = new Uint8Array(1);
  for (const [main, sub] of [
    [5, 0],
    [5, 1023],
    [6, 0],
  ]) {
    assert.equal(cache.get(main, sub), undefined);
    cache.add(main, sub, record);
    assert.equal(cache.get(main, sub), record);
  }
  // 5.1024 would have the number of 6.0.
  assert.equal(cache.get(5, 1024), undefined);
  cache.add(4, 1024, new Uint8Array(2));
  assert.equal(cache.get(5, 0), record);
  cache.add(Number.MAX_SAFE_INTEGER, 0, record);
  assert.equal(cache.get(Number.MAX_SAFE_INTEGER, 0), undefined);
  cache.add(7, 0, new Uint8Array(MAX_CACHED_RECORD_BYTES + 1));
  assert.equal(cache.get(7, 0), undefined);
});

test("the bytes of the cache are those of the records that it can find", () => {
  const cache = new RecordCache(100_000);
  const bytes = 1000 + 256;
  const half = Math.ceil(50_000 / bytes);
  for (let main = 1; main <= half; main++) cache.add(main, 0, new Uint8Array(1000));
  assert.equal(cache.sizeBytes, half * bytes);
  // All are in the old half, from which a read takes them into the young one.
  for (let main = 1; main < half; main++) {
    assert.notEqual(cache.get(main, 0), undefined);
    assert.equal(cache.sizeBytes, half * bytes);
  }
});
