/**
 * Records read from the files of a LevelDB's tables are those that the binding reads: after any
 * history of puts, deletions and compactions, and for any range.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type KeyspaceWrite, SeededRandom } from "@quorate/host";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromLatin1, KeyValue, toLatin1 } from "@quorate/proto";
import type { EtcdSnapshot } from "../src/etcd-file/export.ts";
import { BytesDamage } from "../src/level-files/bytes.ts";
import { openTables, type TableRange, TableRecords } from "../src/level-files/records.ts";
import { WINDOW_BYTES } from "../src/level-files/table-run.ts";
import { RecordHead } from "../src/mvcc/restore.ts";
import { Store } from "../src/store.ts";
import { applyEntry, randomLog } from "./store-log.ts";

const directory = mkdtempSync(join(tmpdir(), "quorate-table-records-"));
after(() => rmSync(directory, { recursive: true }));

const random = new SeededRandom(20_261_122n);
const keyOf = (i: number): string => `k${String(i).padStart(5, "0")}${"x".repeat(i % 7)}`;
/** Values that compress and values that do not, small ones and some larger than a window. */
function someValue(): Uint8Array {
  const length = [0, 3, 40, 300, 5000][random.below(5)];
  if (random.below(400) === 0) return new Uint8Array(WINDOW_BYTES + 7).fill(random.below(256));
  return random.below(2) === 0
    ? new Uint8Array(length).fill(random.below(256))
    : Uint8Array.from({ length }, () => random.below(256));
}

/** Opened again, so that all is in tables. */
async function write(batches: readonly (readonly KeyspaceWrite[])[], compacts: boolean) {
  const keyspace = await levelKeyspaces.open(directory, { create: true });
  for (const batch of batches) await keyspace.write(batch);
  if (compacts) await keyspace.compact({});
  await keyspace.close();
}

async function fromBinding({ from, to }: TableRange): Promise<string[]> {
  const keyspace = await levelKeyspaces.open(directory, { create: false });
  const records: string[] = [];
  for await (const slice of keyspace.scan({ from, to }))
    for (const [key, value] of slice) records.push(`${toLatin1(key)}=${toLatin1(value)}`);
  await keyspace.close();
  return records;
}

async function fromTables(range: TableRange): Promise<string[]> {
  const tables = openTables(nodeDisk, directory, range)!;
  const records = tables.records();
  const found: string[] = [];
  try {
    do {
      while (records.next()) {
        const { key, bytes, valueStart, valueEnd } = records.record;
        const value = toLatin1(bytes, valueStart, valueEnd);
        found.push(`${toLatin1(key, 0, records.keyLength)}=${value}`);
      }
    } while (await records.refill());
  } finally {
    tables.close();
  }
  return found;
}

describe("records of tables", () => {
  before(async () => {
    // Several levels, with keys that were put again and deleted in newer ones.
    for (let round = 0; round < 6; round++) {
      const batches = Array.from({ length: 4 }, () =>
        Array.from({ length: 500 }, (): KeyspaceWrite => {
          const key = fromLatin1(keyOf(random.below(3000)));
          return { key, value: random.below(4) === 0 ? undefined : someValue() };
        }),
      );
      await write(batches, round === 1);
    }
    await write([], false);
  });

  it("are those of the binding", async () => {
    const ranges: [string, string][] = [
      ["\0", "\xff"],
      ["k01", "k02"],
      ["k00999", "k00999z"],
      ["a", "b"],
      ["x", "z"],
      ["", "k005"],
    ];
    for (const [from, to] of ranges) {
      const range = { from: fromLatin1(from), to: fromLatin1(to) };
      const expected = await fromBinding(range);
      assert.deepEqual(await fromTables(range), expected, `${from} to ${to}`);
      if (from === "\0") assert.ok(expected.length > 1000, `${expected.length} records`);
    }
  });

  it("can be left while the next of them are being read", async () => {
    const range = { from: fromLatin1("\0"), to: fromLatin1("\xff") };
    const expected = await fromTables(range);
    for (let refills = 1; refills < 6; refills++) {
      const tables = openTables(nodeDisk, directory, range)!;
      const records = tables.records();
      let count = 0;
      for (let i = 0; i < refills && (await records.refill()); i++) while (records.next()) count++;
      assert.ok(count > 0 && count < expected.length, `${count} of ${expected.length}`);
      // What is under way fails, and nobody hears of it.
      tables.close();
    }
    assert.deepEqual(await fromTables(range), expected);
  });

  it("of a directory that has no LevelDB, or lacks a table, are not read", () => {
    const range = { from: fromLatin1("a"), to: fromLatin1("z") };
    assert.equal(openTables(nodeDisk, join(directory, "none"), range), undefined);
    const lacking = mkdtempSync(join(tmpdir(), "quorate-table-records-"));
    after(() => rmSync(lacking, { recursive: true }));
    for (const name of readdirSync(directory).filter((one) => !one.endsWith(".ldb"))) {
      const path = join(lacking, name);
      const file = nodeDisk.open(path, "create");
      file.write([nodeDisk.readAll(join(directory, name))], 0);
      file.close();
    }
    assert.equal(openTables(nodeDisk, lacking, range), undefined);
  });

  it("of a table that is cut short end with an error", async () => {
    const range = { from: fromLatin1("\0"), to: fromLatin1("\xff") };
    const [table] = readdirSync(directory).filter((name) => name.endsWith(".ldb"));
    const path = join(directory, table);
    truncateSync(path, 100);
    await assert.rejects(fromTables(range), /cut short/);
  });
});

describe("a store with LevelDB's files", () => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-table-store-"));
  after(() => rmSync(dir, { recursive: true }));
  const options = { disk: nodeDisk, sha256: () => createHash("sha256") };
  const log = randomLog(7, 400);
  const applyTo = (store: Store): void => {
    for (const entry of log.entries) applyEntry(store, entry);
  };
  const fileOf = async (snapshot: EtcdSnapshot, meanwhile?: () => Promise<void>) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of snapshot.chunks()) {
      chunks.push(chunk.slice());
      await meanwhile?.();
    }
    await snapshot.close();
    return createHash("sha256").update(Buffer.concat(chunks)).digest("hex");
  };

  it("is the same after it was opened again, and in etcd's file, as one through the binding", async () => {
    const memory = await Store.open(new MemoryKeyspaceOpener(new MemoryDisk()), "/store");
    applyTo(memory);
    const expected = await fileOf(await memory.etcdSnapshot("3.7.0"));
    const written = await Store.open(levelKeyspaces, dir, options);
    applyTo(written);
    assert.equal(await fileOf(await written.etcdSnapshot("3.7.0")), expected);
    await written.close({ flush: true });

    const store = await Store.open(levelKeyspaces, dir, options);
    const hash = (one: Store) => one.mvcc.hashKV(0).then(({ hash: value }) => value);
    assert.equal(await hash(store), await hash(memory));
    // The files that are open keep what changes and compactions replace meanwhile.
    const snapshot = await store.etcdSnapshot("3.7.0");
    assert.equal(await fileOf(snapshot, () => store.reclaim()), expected);
    await store.close({ flush: true });
  });

  it("is hashed through LevelDB where its files make no sense", async (t) => {
    const store = await Store.open(levelKeyspaces, dir, options);
    const { hash } = await store.mvcc.hashKV(0);
    const next = t.mock.method(TableRecords.prototype, "next", () => {
      throw new BytesDamage(7, "a record of a block makes no sense");
    });
    assert.equal((await store.mvcc.hashKV(0)).hash, hash);
    assert.ok(next.mock.callCount() > 0);
    await store.close({ flush: true });
  });
});

describe("the head of a record", () => {
  const head = new RecordHead();
  const record = (fields: Partial<KeyValue>): Uint8Array =>
    KeyValue.encode(KeyValue.create(fields)).slice();
  /** The record between other bytes, as in a block. */
  const read = (bytes: Uint8Array): boolean => {
    const block = new Uint8Array(bytes.length + 12).fill(0x18);
    block.set(bytes, 5);
    return head.read(block, 5, 5 + bytes.length);
  };

  it("is what the decoder reads", () => {
    for (let i = 0; i < 500; i++) {
      const number = () =>
        random.below(9) === 0
          ? 0
          : random.below(2 ** (1 + random.below(31))) * 2 ** random.below(15);
      const kv = KeyValue.create({
        key: new Uint8Array(1 + random.below(200)).fill(7),
        createRevision: number(),
        modRevision: number(),
        version: number(),
        value: someValue(),
      });
      assert.ok(read(record(kv)));
      assert.deepEqual(
        [head.keyEnd - head.keyStart, head.createRevision, head.modRevision, head.version],
        [kv.key.length, kv.createRevision, kv.modRevision, kv.version],
      );
    }
  });

  it("of a record with a lease, without a key, or malformed is left to the decoder", () => {
    const key = fromLatin1("k");
    assert.equal(read(record({ key, lease: 7n, modRevision: 3 })), false);
    assert.equal(read(record({ modRevision: 3 })), false);
    const whole = record({ key, createRevision: 300, modRevision: 301, value: fromLatin1("v") });
    for (let length = 0; length < whole.length; length++) {
      const isWhole = read(whole.subarray(0, length));
      // Cut between two fields, it is a record with fewer of them.
      if (isWhole) KeyValue.decode(whole.subarray(0, length));
    }
    assert.equal(read(Uint8Array.of(...whole, 0x18)), false);
    assert.equal(
      read(Uint8Array.of(0x0a, 1, 97, 0x18, ...new Array<number>(9).fill(0xff), 1)),
      false,
    );
  });
});
