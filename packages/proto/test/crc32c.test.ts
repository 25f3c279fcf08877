import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { crc32c } from "../src/crc32c.ts";
import { fromLatin1 } from "../src/wire/bytes.ts";
import { SEED } from "./reflect.ts";

test("known sums", () => {
  const cases: [Uint8Array, number][] = [
    [fromLatin1(""), 0],
    [fromLatin1("123456789"), 0xe3069283],
    [fromLatin1("a"), 0xc1d04330],
    // RFC 3720, appendix B.4.
    [new Uint8Array(32), 0x8a9136aa],
    [new Uint8Array(32).fill(0xff), 0x62a8ab43],
    [Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    [Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
  ];
  for (const [bytes, sum] of cases) assert.equal(crc32c(0, bytes), sum);
});

// One bit at a time.
function naive(crc: number, bytes: Uint8Array): number {
  let c = ~crc >>> 0;
  for (const byte of bytes) {
    c ^= byte;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1;
  }
  return ~c >>> 0;
}

test("equals the naive sum, from any sum so far, and over any part of an array", () => {
  fc.assert(
    fc.property(
      fc.nat(0xffff_ffff),
      fc.uint8Array({ maxLength: 200 }),
      fc.nat(),
      fc.nat(),
      (crc, bytes, a, b) => {
        assert.equal(crc32c(crc, bytes), naive(crc, bytes));
        const start = a % (bytes.length + 1);
        const end = start + (b % (bytes.length - start + 1));
        assert.equal(crc32c(crc, bytes, start, end), naive(crc, bytes.subarray(start, end)));
        assert.equal(
          crc32c(crc32c(crc, bytes.subarray(0, start)), bytes.subarray(start)),
          crc32c(crc, bytes),
        );
      },
    ),
    { seed: SEED, numRuns: 1000 },
  );
});

test("a range outside of the array is refused", () => {
  const bytes = new Uint8Array(4);
  assert.throws(() => crc32c(0, bytes, 0, 5), RangeError);
  assert.throws(() => crc32c(0, bytes, -1, 2), RangeError);
  assert.throws(() => crc32c(0, bytes, 3, 2), RangeError);
});
