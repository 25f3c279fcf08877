/** Names and marks. */
import assert from "node:assert/strict";
import { it } from "node:test";
import {
  decodeMark,
  encodeMark,
  MARK_BYTES,
  parseIndexedName,
  segmentFor,
  segmentName,
  segmentsAmong,
} from "../src/format.ts";

it("names segments as etcd does", () => {
  assert.equal(segmentName(0, 0).name, "0000000000000000-0000000000000000.wal");
  assert.equal(segmentName(26, 0x1ffff).name, "000000000000001a-000000000001ffff.wal");
  assert.deepEqual(
    parseIndexedName("000000000000001a-000000000001ffff.wal", ".wal"),
    [26, 0x1ffff],
  );
  for (const name of [
    "0.tmp",
    "1a-1.wal",
    "000000000000001a-000000000001ffff.wal.broken",
    "ffffffffffffffff-0000000000000000.wal",
    ".wal",
  ]) {
    assert.equal(parseIndexedName(name, ".wal"), undefined, name);
  }
});

it("orders segments and finds where reading starts", () => {
  const segments = segmentsAmong([
    segmentName(2, 70).name,
    "3.tmp",
    segmentName(0, 0).name,
    "lock",
    segmentName(1, 40).name,
  ]);
  assert.deepEqual(
    segments.map((segment) => segment.sequence),
    [0, 1, 2],
  );
  assert.deepEqual(
    [0, 39, 40, 69, 70, 1000].map((index) => segmentFor(segments, index)),
    [0, 0, 1, 1, 2, 2],
  );
  assert.equal(segmentFor(segments.slice(1), 39), -1);
});

it("reads back a mark, and nothing else as one", () => {
  const data = new Uint8Array(MARK_BYTES);
  for (const durableBytes of [0, 8, 64_000_000, 3_000_000_000, 2 ** 40 + 7, 123_456]) {
    encodeMark(data, durableBytes);
    assert.equal(decodeMark(data), durableBytes);
  }
  for (let bit = 0; bit < data.length * 8; bit++) {
    const flipped = data.slice();
    flipped[bit >> 3] ^= 1 << (bit & 7);
    assert.equal(decodeMark(flipped), undefined);
  }
  assert.equal(decodeMark(data.subarray(1)), undefined);
});
