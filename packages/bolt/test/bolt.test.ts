/**
 * Writer and reader together: every shape of record, in constant memory.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BoltFile, type BoltRecord, boltOutput, MAX_KEY_BYTES, PAGE_BYTES } from "@quorate/bolt";
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
