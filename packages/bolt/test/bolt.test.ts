/**
 * Writer and reader together: every shape of record, in constant memory.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  BoltFile,
  type BoltRecord,
  type BucketSizes,
  boltOutput,
  MAX_KEY_BYTES,
  PAGE_BYTES,
} from "@quorate/bolt";
import { MemoryDisk } from "@quorate/host/testing";
import fc from "fast-check";
import { type Buckets, bytesOf, keyOf, readBack, save, sliced } from "./support.ts";

const SEED = 20_260_104;

describe("a file that is written and read", () => {
  test("no buckets, an empty bucket, one record", async () => {
    const one: BoltRecord = [keyOf(1), bytesOf(0)];
    for (const buckets of [{}, { key: [] }, { key: [one], meta: [] }] as Buckets[]) {
      const disk = new MemoryDisk();
      await save(disk, "f", buckets);
      assert.deepEqual(readBack(disk, "f"), buckets);
    }
  });

  test("many records: branches of several levels, none with a single child", async () => {
    const records = Array.from(
      { length: 60_000 },
      (_, i): BoltRecord => [keyOf(i), bytesOf(i % 90)],
    );
    const disk = new MemoryDisk();
    await save(disk, "f", { alarm: [], key: records, meta: records.slice(0, 3) });
    assert.deepEqual(readBack(disk, "f"), { alarm: [], key: records, meta: records.slice(0, 3) });
  });

  test("every number of records around the capacity of a page and a level", async () => {
    // Long keys: a branch page holds few of them, so that trees grow high soon.
    const records = Array.from(
      { length: 400 },
      (_, i): BoltRecord => [keyOf(i, 900), bytesOf(i % 7)],
    );
    for (let count = 0; count <= records.length; count += count < 40 ? 1 : 23) {
      const disk = new MemoryDisk();
      await save(disk, "f", { key: records.slice(0, count) });
      assert.deepEqual(readBack(disk, "f"), { key: records.slice(0, count) });
    }
  });

  test("values larger than a page, keys of the largest size, in any order", async () => {
    const key = fc.uint8Array({ minLength: 1, maxLength: 40 });
    const record = fc.tuple(key, fc.oneof(fc.nat(200), fc.nat(40_000)));
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(record, {
          selector: ([one]) => Buffer.from(one).toString("hex"),
          maxLength: 60,
        }),
        async (some) => {
          const records = some
            .map(([one, length]): BoltRecord => [one, bytesOf(length)])
            .sort(([a], [b]) => Buffer.compare(a, b));
          const disk = new MemoryDisk();
          await save(disk, "f", {
            auth: records,
            key: [...records, [new Uint8Array(MAX_KEY_BYTES).fill(255), bytesOf(3)]],
          });
          assert.deepEqual(readBack(disk, "f")["auth"], records);
          assert.equal(readBack(disk, "f")["key"].length, records.length + 1);
        },
      ),
      { seed: SEED, numRuns: 60 },
    );
  });

  test("the size is known before the first byte, and the buckets are sorted by name", async () => {
    const output = await boltOutput(
      ["meta", "key", "authUsers", "auth"].map((name) => ({
        name,
        scan: () => sliced([[keyOf(1), bytesOf(9)]]),
      })),
    );
    let sizeBytes = 0;
    const disk = new MemoryDisk();
    const file = disk.open("f", "create");
    for await (const chunk of output.chunks()) {
      file.write([chunk], sizeBytes);
      sizeBytes += chunk.length;
    }
    file.close();
    assert.equal(sizeBytes, output.sizeBytes);
    assert.equal(sizeBytes % PAGE_BYTES, 0);
    const opened = BoltFile.open(disk, "f");
    assert.deepEqual(opened.bucketNames, ["auth", "authUsers", "key", "meta"]);
    opened.close();
  });

  test("memory is bounded: a chunk is at most its slice and a page per level", async () => {
    const record: BoltRecord[] = [];
    async function* endless(): AsyncGenerator<BoltRecord[]> {
      for (let i = 0; i < 2000; i++) {
        record.length = 0;
        for (let j = 0; j < 64; j++) record.push([keyOf(i * 64 + j), bytesOf(200)]);
        yield [...record];
      }
    }
    const output = await boltOutput([{ name: "key", scan: endless }]);
    let longest = 0;
    for await (const chunk of output.chunks()) longest = Math.max(longest, chunk.length);
    assert.ok(output.sizeBytes > 28_000_000, `${output.sizeBytes}`);
    assert.ok(longest <= 64 * 240 + 5 * PAGE_BYTES, `${longest}`);
  });

  test("records out of order, and passes that differ, break an invariant", async () => {
    const wrong: BoltRecord[] = [
      [keyOf(2), bytesOf(1)],
      [keyOf(1), bytesOf(1)],
    ];
    await assert.rejects(
      boltOutput([{ name: "key", scan: () => sliced(wrong) }]),
      /BOLT-3: the keys of a bucket ascend/,
    );
    let calls = 0;
    const output = await boltOutput([
      {
        name: "key",
        scan: () =>
          sliced(calls++ === 0 ? [] : wrong.slice(0, 1).map(([key]) => [key, bytesOf(9000)])),
      },
    ]);
    await assert.rejects(async () => {
      for await (const _ of output.chunks());
    }, /both passes/);
  });
});

describe("a bucket whose records are counted", () => {
  const sizesOf = (records: readonly BoltRecord[]) => ({
    records: records.length,
    bytes: records.reduce((sum, [key, value]) => sum + key.length + value.length, 0),
    keyBytes: Math.max(1, ...records.map(([key]) => key.length)),
  });

  /** Writes a bucket between two others; returns the file, and how often it was scanned. */
  async function write(disk: MemoryDisk, records: readonly BoltRecord[], sizes: BucketSizes) {
    let scans = 0;
    const other = [[keyOf(1), bytesOf(9)]] as const;
    const output = await boltOutput([
      { name: "auth", scan: () => sliced(other) },
      {
        name: "key",
        sizes,
        scan() {
          scans++;
          return sliced(records);
        },
      },
      { name: "meta", scan: () => sliced(other) },
    ]);
    const file = disk.open("f", "create");
    let at = 0;
    for await (const chunk of output.chunks()) {
      file.write([chunk], at);
      at += chunk.length;
    }
    file.close();
    assert.equal(at, output.sizeBytes);
    assert.deepEqual(readBack(disk, "f")["meta"], other);
    return { sizeBytes: at, scans };
  }

  test("is scanned once, and reads back, whatever the sizes of its records", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.nat(60), fc.nat(3000), fc.constant(2050), fc.nat(90_000)), {
          maxLength: 400,
        }),
        fc.nat(40),
        async (lengths, longKey) => {
          const records = lengths.map(
            (length, i): BoltRecord => [keyOf(i, 9 + (i % (1 + longKey))), bytesOf(length)],
          );
          const disk = new MemoryDisk();
          const { scans, sizeBytes } = await write(disk, records, sizesOf(records));
          assert.equal(scans, 1);
          assert.deepEqual(readBack(disk, "f")["key"], records);
          const { bytes } = sizesOf(records);
          const mostBytes = 1.1 * (bytes + 16 * records.length) + 40 * PAGE_BYTES;
          assert.ok(sizeBytes < mostBytes, `${sizeBytes} for ${bytes}`);
        },
      ),
      { seed: SEED, numRuns: 60 },
    );
  });

  test("that would leave half of each page empty has leaves of several pages", async () => {
    const records = Array.from({ length: 3000 }, (_, i): BoltRecord => [keyOf(i), bytesOf(2050)]);
    const disk = new MemoryDisk();
    const { sizeBytes } = await write(disk, records, sizesOf(records));
    assert.deepEqual(readBack(disk, "f")["key"], records);
    assert.ok(sizeBytes < 1.1 * 3000 * 2083, `${sizeBytes} bytes`);
  });

  test("with fewer records than were counted has the rest of its pages at its root", async () => {
    const records = Array.from({ length: 500 }, (_, i): BoltRecord => [keyOf(i), bytesOf(100)]);
    const disk = new MemoryDisk();
    const counted = { records: 100_000, bytes: 12_000_000, keyBytes: 17 };
    const { sizeBytes } = await write(disk, records, counted);
    assert.deepEqual(readBack(disk, "f")["key"], records);
    assert.ok(sizeBytes > 12_000_000, `${sizeBytes} bytes`);
  });

  test("with more records than were counted breaks an invariant", async () => {
    const records = Array.from({ length: 5000 }, (_, i): BoltRecord => [keyOf(i), bytesOf(100)]);
    await assert.rejects(
      write(new MemoryDisk(), records, { records: 1, bytes: 30, keyBytes: 17 }),
      /BOLT-6: the pages that are reserved for a bucket suffice/,
    );
  });
});
