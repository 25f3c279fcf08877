/**
 * Files that bbolt would not write are refused with path, offset and reason; none makes the reader
 * loop or read out of bounds.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { BoltDamageError, type BoltRecord } from "@quorate/bolt";
import { MemoryDisk } from "@quorate/host/testing";
import { bytesOf, keyOf, readBack, save } from "./support.ts";

const PAGE = 4096;
let good: Uint8Array;

/** A copy of the good file with a change, read to its end. */
function reading(change: (bytes: Uint8Array, view: DataView) => Uint8Array | void): () => void {
  const bytes = good.slice();
  const changed = change(bytes, new DataView(bytes.buffer)) ?? bytes;
  const disk = new MemoryDisk();
  const file = disk.open("bad.db", "create");
  file.write([changed], 0);
  file.close();
  return () => void readBack(disk, "bad.db");
}

function refuses(
  change: (bytes: Uint8Array, view: DataView) => Uint8Array | void,
  offset: number,
  reason: RegExp,
): void {
  assert.throws(reading(change), (error: unknown) => {
    assert.ok(error instanceof BoltDamageError, String(error));
    assert.equal(error.path, "bad.db");
    assert.equal(error.offset, offset);
    assert.match(error.reason, reason);
    assert.match(error.message, /^bad\.db: damaged at byte \d+: /);
    return true;
  });
}

/** The offset of the first page of a kind. */
function pageWith(flags: number): number {
  const view = new DataView(good.buffer, good.byteOffset, good.byteLength);
  for (let at = 3 * PAGE; at < good.length; at += PAGE)
    if (view.getUint16(at + 8, true) === flags) return at;
  throw new Error("no such page");
}

describe("damage", () => {
  before(async () => {
    const disk = new MemoryDisk();
    const records = Array.from({ length: 500 }, (_, i): BoltRecord => [keyOf(i), bytesOf(50)]);
    await save(disk, "good.db", { key: records, meta: records.slice(0, 2) });
    good = disk.readAll("good.db").slice();
  });

  test("with one broken meta page the other is used", () => {
    reading((bytes) => void bytes.fill(0, 0, PAGE))();
    reading((bytes) => void bytes.fill(0, PAGE, 2 * PAGE))();
  });
  test("no meta page", () =>
    refuses((bytes) => void bytes.fill(0, 0, 2 * PAGE), 0, /is no bbolt database/));
  test("another version", () =>
    refuses(
      (_, view) => [0, PAGE].forEach((at) => void view.setUint32(at + 20, 3, true)),
      0,
      /unknown version 3/,
    ));
  test("a flipped bit in both meta pages", () =>
    refuses(
      (_, view) => [0, PAGE].forEach((at) => void view.setUint8(at + 32, 77)),
      0,
      /checksum of the meta page/,
    ));
  test("an empty file, and a few bytes", () => {
    refuses(() => new Uint8Array(0), 0, /only 0 bytes/);
    refuses((bytes) => bytes.slice(0, 50), 0, /only 50 bytes/);
  });
  test("a truncated file", () =>
    refuses((bytes) => bytes.slice(0, -PAGE), good.length - PAGE, / of \d+ bytes/));
  test("a page with another number", () => {
    const at = pageWith(2);
    refuses((_, view) => view.setUint32(at, 9999, true), at, /has page number 9999/);
  });
  test("a page of the wrong kind", () => {
    const at = pageWith(2);
    refuses((_, view) => view.setUint16(at + 8, 16, true), at, /neither branch nor leaf/);
  });
  test("more elements than fit, an element behind its page, an empty key", () => {
    const at = pageWith(2);
    refuses((_, view) => view.setUint16(at + 10, 60_000, true), at, /60000 elements do not fit/);
    refuses((_, view) => view.setUint32(at + 16 + 12, 0x7fff_ffff, true), at, /exceed the page/);
    refuses((_, view) => view.setUint32(at + 16 + 8, 0, true), at, /no key/);
  });
  test("a page that overflows behind the end", () => {
    const at = pageWith(2);
    refuses(
      (_, view) => view.setUint32(at + 12, 0xffff_ffff, true),
      at,
      /overflows into 4294967295 pages/,
    );
  });
  test("keys out of order within a page, and against the branch above", () => {
    const at = pageWith(2);
    const first = at + 16 + new DataView(good.buffer).getUint32(at + 16 + 4, true);
    refuses((bytes) => void (bytes[first] = 0xff), at, /follows|is not below/);
    const branch = pageWith(1);
    const second = branch + 32 + new DataView(good.buffer).getUint32(branch + 32, true);
    refuses((bytes) => void (bytes[second + 7] = 1), 3 * PAGE, /is not below/);
  });
  test("two references to one page, and a reference to a missing page", () => {
    const at = pageWith(1);
    refuses(
      (_, view) => view.setBigUint64(at + 32 + 8, 3n, true),
      3 * PAGE,
      /two elements refer to page 3/,
    );
    refuses(
      (_, view) => view.setBigUint64(at + 32 + 8, 1n << 40n, true),
      at,
      /refers to page 1099511627776/,
    );
  });

  test("no flipped bit anywhere does more than damage", () => {
    for (let i = 0; i < 3000; i++) {
      const at = (i * 7919) % good.length;
      try {
        reading((bytes) => void (bytes[at] ^= 1 << (i % 8)))();
      } catch (error) {
        assert.ok(error instanceof BoltDamageError, `byte ${at}: ${String(error)}`);
      }
    }
  });
});
