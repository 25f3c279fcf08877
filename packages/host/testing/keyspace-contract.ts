/** The contract suite of Keyspace, without crashes. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type {
  Keyspace,
  KeyspaceOpener,
  KeyspaceRange,
  KeyspaceRecord,
  KeyspaceWrite,
} from "../src/keyspace.ts";
import { SeededRandom } from "../src/random.ts";
import { rejectsWithDiskError, throwsDiskError } from "./disk-contract.ts";

export interface KeyspacesUnderTest {
  readonly opener: KeyspaceOpener;
  /** An existing directory for the test. */
  readonly root: string;
  cleanUp?(): void;
}

const bytes = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0));
const text = (content: Uint8Array): string => String.fromCharCode(...content);
const put = (key: string, value: string): KeyspaceWrite => ({
  key: bytes(key),
  value: bytes(value),
});
const del = (key: string): KeyspaceWrite => ({ key: bytes(key), value: undefined });

/** All records of a scan as "key=value". */
async function collect(scan: AsyncIterable<KeyspaceRecord[]>): Promise<string[]> {
  const records: string[] = [];
  for await (const slice of scan) {
    assert.ok(slice.length > 0, "no empty slices");
    for (const [key, value] of slice) records.push(`${text(key)}=${text(value)}`);
  }
  return records;
}

/** Registers the suite. */
export function keyspaceContract(name: string, make: () => KeyspacesUnderTest): void {
  describe(`keyspace: ${name}`, () => {
    let under: KeyspacesUnderTest;
    let path: string;
    let keyspace: Keyspace;

    beforeEach(async () => {
      under = make();
      path = `${under.root}/db`;
      keyspace = await under.opener.open(path, { create: true });
    });
    afterEach(async () => {
      await keyspace.close();
      under.cleanUp?.();
    });

    const range = (from?: string, to?: string): KeyspaceRange => ({
      from: from === undefined ? undefined : bytes(from),
      to: to === undefined ? undefined : bytes(to),
    });

    it("reads what was written, one key and many at once", async () => {
      await keyspace.write([put("a", "1"), put("b", ""), put("c", "3")]);
      assert.equal(text(keyspace.get(bytes("a"))!), "1");
      assert.equal(keyspace.get(bytes("b"))!.length, 0);
      assert.equal(keyspace.get(bytes("d")), undefined);
      const many = await keyspace.getMany([bytes("c"), bytes("x"), bytes("a"), bytes("c")]);
      assert.deepEqual(
        many.map((value) => value && text(value)),
        ["3", undefined, "1", "3"],
      );
      assert.deepEqual(await keyspace.getMany([]), []);
    });

    it("returns plain arrays, whose slice() copies", async () => {
      await keyspace.write([put("a", "1")]);
      const found = [keyspace.get(bytes("a")), ...(await keyspace.getMany([bytes("a")]))];
      for await (const slice of keyspace.scan({})) found.push(...slice.flat());
      assert.equal(found.length, 4);
      for (const one of found) assert.equal(Object.getPrototypeOf(one), Uint8Array.prototype);
    });

    it("refuses every use after close", async () => {
      await keyspace.close();
      await keyspace.close();
      for (const call of [
        () => keyspace.get(bytes("a")),
        () => keyspace.scan({}),
        () => keyspace.snapshot(),
      ]) {
        throwsDiskError(call, "Io");
      }
      await rejectsWithDiskError(keyspace.getMany([bytes("a")]), "Io");
      await rejectsWithDiskError(keyspace.write([put("a", "1")]), "Io");
      await rejectsWithDiskError(keyspace.compact({}), "Io");
    });

    it("lets the last write of a key in a batch win, and accepts empty batches", async () => {
      await keyspace.write([
        put("a", "1"),
        put("a", "2"),
        put("b", "1"),
        del("b"),
        del("c"),
        put("c", "3"),
      ]);
      await keyspace.write([]);
      assert.deepEqual(await collect(keyspace.scan({})), ["a=2", "c=3"]);
    });

    it("takes each change before the next, which may be the same object with the same bytes", async () => {
      const count = 300;
      const write = { key: new Uint8Array(2), value: new Uint8Array(1) };
      await keyspace.write(
        (function* () {
          for (let i = 0; i < count; i++) {
            write.key.set([i >> 8, i]);
            write.value[0] = i;
            yield write;
          }
        })(),
      );
      for (let i = 0; i < count; i++)
        assert.deepEqual(keyspace.get(Uint8Array.of(i >> 8, i)), Uint8Array.of(i));
    });

    it("does not see changes of the caller's bytes after the call", async () => {
      const key = bytes("k");
      const value = bytes("v");
      const done = keyspace.write([{ key, value }]);
      key.fill(0);
      value.fill(0);
      await done;
      assert.deepEqual(await collect(keyspace.scan({})), ["k=v"]);
    });

    it("keeps values of all lengths apart", async () => {
      const lengths = [0, 1, 1023, 1024, 1025, 4095, 4096, 4097, ...new Array(100).fill(100)];
      const records = lengths.map((length, at) => ({
        key: Uint8Array.of(at),
        value: new Uint8Array(length).fill(at),
      }));
      await keyspace.write(records);
      for (const { key, value } of records) {
        assert.equal(Buffer.compare(keyspace.get(key)!, value), 0);
      }
    });

    it("orders keys by their bytes, as unsigned numbers, a prefix first", async () => {
      const keys = ["\xff\xff", "\x00", "a", "\x7f", "\x80", "ab", "\xff", "\x00\x00"];
      await keyspace.write(keys.map((key) => put(key, "v")));
      assert.deepEqual(
        await collect(keyspace.scan({})),
        ["\x00", "\x00\x00", "a", "ab", "\x7f", "\x80", "\xff", "\xff\xff"].map(
          (key) => `${key}=v`,
        ),
      );
    });

    it("scans ranges: from is in, to is out", async () => {
      await keyspace.write(["a", "b", "c", "d"].map((key) => put(key, key)));
      assert.deepEqual(await collect(keyspace.scan(range("b", "d"))), ["b=b", "c=c"]);
      assert.deepEqual(await collect(keyspace.scan(range("bb"))), ["c=c", "d=d"]);
      assert.deepEqual(await collect(keyspace.scan(range(undefined, "b"))), ["a=a"]);
      assert.deepEqual(await collect(keyspace.scan(range("c", "c"))), []);
      assert.deepEqual(await collect(keyspace.scan(range("x", "z"))), []);
    });

    it("cuts a scan into slices of about the requested size", async () => {
      const value = "v".repeat(1000);
      await keyspace.write(
        Array.from({ length: 100 }, (_, i) => put(`k${String(i).padStart(3, "0")}`, value)),
      );
      let slices = 0;
      let records = 0;
      for await (const slice of keyspace.scan({}, { sliceBytes: 10_000 })) {
        slices++;
        records += slice.length;
        assert.ok(slice.length <= 12, `a slice of ${slice.length} records`);
      }
      assert.equal(records, 100);
      assert.ok(slices >= 9, `${slices} slices`);
      for await (const slice of keyspace.scan({})) assert.equal(slice.length, 100);
    });

    it("scans the state at the time of the call, and may end early", async () => {
      await keyspace.write([put("a", "1"), put("b", "1")]);
      const scan = keyspace.scan({});
      await keyspace.write([put("a", "2"), del("b"), put("c", "2")]);
      assert.deepEqual(await collect(scan), ["a=1", "b=1"]);
      for await (const slice of keyspace.scan({}, { sliceBytes: 1 })) {
        assert.deepEqual(
          slice.map(([key]) => text(key)),
          ["a"],
        );
        break;
      }
      assert.deepEqual(await collect(keyspace.scan({})), ["a=2", "c=2"]);
    });

    it("keeps a snapshot unchanged, for any number of scans", async () => {
      await keyspace.write([put("a", "1"), put("b", "1")]);
      const snapshot = keyspace.snapshot();
      await keyspace.write([put("a", "2"), del("b")]);
      assert.deepEqual(await collect(snapshot.scan({})), ["a=1", "b=1"]);
      await keyspace.compact({});
      assert.deepEqual(await collect(snapshot.scan(range("b"))), ["b=1"]);
      await snapshot.close();
      assert.deepEqual(await collect(keyspace.scan({})), ["a=2"]);
    });

    it("compacts whole and in part, with concurrent calls", async () => {
      await keyspace.write(Array.from({ length: 500 }, (_, i) => put(`k${i}`, "v".repeat(100))));
      await keyspace.write(Array.from({ length: 400 }, (_, i) => del(`k${i}`)));
      const compaction = keyspace.compact(range("k", "k5"));
      await keyspace.write([put("z", "1")]);
      assert.equal(text(keyspace.get(bytes("z"))!), "1");
      await compaction;
      await keyspace.compact({});
      assert.equal((await collect(keyspace.scan({}))).length, 101);
      assert.ok(keyspace.sizeOnDiskBytes() > 101 * 10);
    });

    it("keeps all records over close and open", async () => {
      await keyspace.write([put("a", "1"), put("b", "2")]);
      await keyspace.close();
      keyspace = await under.opener.open(path, { create: false });
      assert.deepEqual(await collect(keyspace.scan({})), ["a=1", "b=2"]);
    });

    it("waits for a pending write on close", async () => {
      const done = keyspace.write([put("a", "1")]);
      await keyspace.close();
      await done;
      keyspace = await under.opener.open(path, { create: false });
      assert.deepEqual(await collect(keyspace.scan({})), ["a=1"]);
    });

    it("refuses a second opening, and a missing store unless it may be created", async () => {
      await rejectsWithDiskError(under.opener.open(path, { create: true }), "Locked");
      await rejectsWithDiskError(
        under.opener.open(`${under.root}/none`, { create: false }),
        "NotFound",
      );
      await (await under.opener.open(`${under.root}/none`, { create: true })).close();
    });

    it("agrees with a plain map over a random history", async () => {
      const random = new SeededRandom(20260102n);
      const model = new Map<string, string>();
      for (let round = 0; round < 60; round++) {
        const batch: KeyspaceWrite[] = [];
        for (let i = random.below(20); i >= 0; i--) {
          const key = String.fromCharCode(random.below(4), random.below(256)).slice(
            0,
            1 + random.below(2),
          );
          if (random.below(3) === 0) {
            batch.push(del(key));
            model.delete(key);
          } else {
            const value = String(random.below(1000));
            batch.push(put(key, value));
            model.set(key, value);
          }
        }
        await keyspace.write(batch);
        if (round % 20 === 10) {
          await keyspace.close();
          keyspace = await under.opener.open(path, { create: false });
        }
        const from = String.fromCharCode(random.below(4));
        const expected = [...model]
          .filter(([key]) => key >= from)
          .sort(([a], [b]) => (a < b ? -1 : 1));
        assert.deepEqual(
          await collect(keyspace.scan(range(from), { sliceBytes: 1 + random.below(100) })),
          expected.map(([key, value]) => `${key}=${value}`),
        );
        const keys = [...model.keys()].slice(0, 5);
        assert.deepEqual(
          keys.map((key) => text(keyspace.get(bytes(key))!)),
          keys.map((key) => model.get(key)),
        );
      }
    });
  });
}
