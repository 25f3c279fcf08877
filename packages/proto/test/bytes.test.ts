import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  alloc,
  compare,
  concat,
  endOfPrefix,
  equals,
  fromHex,
  fromLatin1,
  fromUtf8,
  idFromHex,
  idToHex,
  readBigU64BE,
  readU32BE,
  readU64BE,
  toHex,
  toLatin1,
  toUtf8,
  utf8Length,
  writeBigU64BE,
  writeLatin1,
  writeU32BE,
  writeU64BE,
} from "../src/wire/bytes.ts";
import { SEED } from "./reflect.ts";

const check = (property: fc.IProperty<never> | fc.IRawProperty<unknown>): void =>
  fc.assert(property as fc.IProperty<unknown>, { seed: SEED, numRuns: 300 });
const plain = (bytes: Uint8Array): void =>
  assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype);

test("latin1 strings have one char per byte, and sort as bytes do", () => {
  check(
    fc.property(fc.uint8Array(), fc.uint8Array(), fc.nat(), (a, b, n) => {
      const s = toLatin1(a);
      assert.equal(s.length, a.length);
      assert.deepEqual(fromLatin1(s), a);
      plain(fromLatin1(s));
      const start = n % (a.length + 1);
      assert.equal(toLatin1(a, start), s.slice(start));
      assert.equal(toLatin1(a, 0, start), s.slice(0, start));
      const t = toLatin1(b);
      assert.equal(compare(a, b), s < t ? -1 : s > t ? 1 : 0);
      assert.equal(equals(a, b), s === t);
      assert.ok(equals(a, a.slice()));
      const padded = new Uint8Array(a.length + 2);
      writeLatin1(padded, s, 1);
      assert.deepEqual(padded, Uint8Array.from([0, ...a, 0]));
    }),
  );
});

test("UTF-8", () => {
  check(
    fc.property(fc.string({ unit: "grapheme" }), (s) => {
      const encoded = fromUtf8(s);
      plain(encoded);
      assert.deepEqual(encoded, new TextEncoder().encode(s));
      assert.equal(utf8Length(s), encoded.length);
      assert.equal(toUtf8(encoded), s);
    }),
  );
  assert.equal(toUtf8(Uint8Array.of(0x41, 0xff, 0x42)), "A\ufffdB");
  assert.equal(toUtf8(Uint8Array.of(0x41, 0x42, 0x43), 1, 2), "B");
  assert.equal(toHex(fromUtf8("\ud800")), "efbfbd");
});

test("hex", () => {
  check(
    fc.property(fc.uint8Array(), (a) => {
      const hex = toHex(a);
      assert.equal(hex, [...a].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
      assert.deepEqual(fromHex(hex), a);
      assert.deepEqual(fromHex(hex.toUpperCase()), a);
    }),
  );
  for (const bad of ["0", "0g", "0x00", " 00"]) assert.throws(() => fromHex(bad), RangeError);
});

test("concat copies, and alloc returns the requested length", () => {
  check(
    fc.property(fc.array(fc.uint8Array()), (chunks) => {
      const joined = concat(chunks);
      plain(joined);
      assert.deepEqual(
        [...joined],
        chunks.flatMap((chunk) => [...chunk]),
      );
    }),
  );
  const one = Uint8Array.of(1);
  const copy = concat([one]);
  one[0] = 2;
  assert.equal(copy[0], 1);
  for (const n of [0, 1, 100, 5000, 100_000]) {
    assert.equal(alloc(n).length, n);
    plain(alloc(n));
  }
});

test("arrays cut from the pool never overlap", () => {
  const arrays = Array.from({ length: 2000 }, (_, i) => alloc((i * 37) % 300).fill(i));
  arrays.forEach((array, i) => {
    assert.equal(array.length, (i * 37) % 300);
    assert.ok(array.every((byte) => byte === i % 256));
  });
});

test("big-endian integers", () => {
  check(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.nat(5), (value, offset) => {
      const bytes = new Uint8Array(16);
      writeBigU64BE(bytes, value, offset);
      assert.equal(new DataView(bytes.buffer).getBigUint64(offset), value);
      assert.equal(readBigU64BE(bytes, offset), value);
      if (value > BigInt(Number.MAX_SAFE_INTEGER))
        assert.throws(() => readU64BE(bytes, offset), RangeError);
      else assert.equal(readU64BE(bytes, offset), Number(value));
    }),
  );
  check(
    fc.property(fc.maxSafeNat(), fc.nat(5), (value, offset) => {
      const bytes = new Uint8Array(16);
      writeU64BE(bytes, value, offset);
      assert.equal(new DataView(bytes.buffer).getBigUint64(offset), BigInt(value));
      assert.equal(readU64BE(bytes, offset), value);
      writeU32BE(bytes, value % 2 ** 32, offset);
      assert.equal(readU32BE(bytes, offset), value % 2 ** 32);
    }),
  );
  const eight = new Uint8Array(8);
  for (const bad of [-1, 1.5, 2 ** 53, Number.NaN])
    assert.throws(() => writeU64BE(eight, bad), RangeError);
  for (const bad of [-1n, 2n ** 64n]) assert.throws(() => writeBigU64BE(eight, bad), RangeError);
  for (const offset of [-1, 1, 8]) {
    assert.throws(() => readU64BE(eight, offset), RangeError);
    assert.throws(() => readBigU64BE(eight, offset), RangeError);
    assert.throws(() => writeU64BE(eight, 0, offset), RangeError);
    assert.throws(() => writeBigU64BE(eight, 0n, offset), RangeError);
  }
});

test("ids as etcd prints them", () => {
  assert.equal(idToHex(0x1701f7e3861531d4n), "1701f7e3861531d4");
  assert.equal(idToHex(0xen), "e");
  assert.equal(idToHex(0n), "0");
  assert.equal(idToHex(-1n), "ffffffffffffffff");
  assert.equal(idFromHex("1701f7e3861531D4"), 0x1701f7e3861531d4n);
  for (const bad of ["", "0x1", "g", "12345678123456781", "-1", " 1"])
    assert.equal(idFromHex(bad), undefined);
});

test("endOfPrefix is the first key after those with the prefix, and changes no argument", () => {
  const ends = [
    [
      [1, 2],
      [1, 3],
    ],
    [[1, 0xff, 0xff], [2]],
    [[0xff], [0]],
    [[], [0]],
  ] as const;
  for (const [prefix, end] of ends) {
    const given = Buffer.from(prefix);
    assert.deepEqual([...endOfPrefix(given)], [...end]);
    assert.deepEqual([...given], [...prefix]);
  }
});
