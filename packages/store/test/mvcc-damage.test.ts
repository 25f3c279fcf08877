/** Stores whose records no store wrote: each is refused with its place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromLatin1, KeyValue } from "@quorate/proto";
import { Backend, Bucket } from "../src/backend/backend.ts";
import { StoreDamageError } from "../src/backend/errors.ts";
import { encodeRevision } from "../src/backend/revision.ts";
import { Mvcc } from "../src/mvcc/index.ts";
import { FINISHED_COMPACT, SCHEDULED_COMPACT } from "../src/mvcc/state.ts";

type Records = readonly [key: Uint8Array, value: Uint8Array][];

const at = encodeRevision;
const pair = (
  key: string,
  createRevision: number,
  modRevision: number,
  version: number,
): Uint8Array => KeyValue.encode({ key: fromLatin1(key), createRevision, modRevision, version });
const gone = (key: string): Uint8Array => KeyValue.encode({ key: fromLatin1(key) });

async function openWith(records: Records, marks: Records = []): Promise<Mvcc> {
  const backend = new Backend(
    await new MemoryKeyspaceOpener(new MemoryDisk()).open("/store", { create: true }),
  );
  for (const [key, value] of records) backend.put(Bucket.key, key, value);
  for (const [key, value] of marks) backend.put(Bucket.meta, key, value);
  return Mvcc.open(backend, "/store");
}

const DAMAGE: readonly [name: string, problem: RegExp, records: Records, marks?: Records][] = [
  [
    "a key too short",
    /the key is not a revision/,
    [[at(2, 0, false).slice(0, 16), pair("a", 2, 2, 1)]],
  ],
  [
    "a key with another mark",
    /the key is not a revision/,
    [[at(2, 0, true).with(17, 0x75), gone("a")]],
  ],
  ["a record cut short", /does not decode/, [[at(2, 0, false), pair("a", 2, 2, 1).slice(0, 4)]]],
  ["an empty record", /no key/, [[at(2, 0, false), new Uint8Array(0)]]],
  ["a record of another revision", /mod revision 3/, [[at(2, 0, false), pair("a", 2, 3, 1)]]],
  ["a first record without a version", /version 0/, [[at(2, 0, false), pair("a", 2, 2, 0)]]],
  ["a record created after itself", /created at 9/, [[at(2, 0, false), pair("a", 9, 2, 1)]]],
  [
    "a put and a deletion at one place",
    /revision 2.0 follows 2.0/,
    [
      [at(2, 0, false), pair("a", 2, 2, 1)],
      [at(2, 0, true), gone("a")],
    ],
  ],
  [
    "a version left out",
    /version 3.* must be 2/,
    [
      [at(2, 0, false), pair("a", 2, 2, 1)],
      [at(4, 0, false), pair("a", 2, 4, 3)],
    ],
  ],
  [
    "another created revision",
    /created at 3; it must be 2 and 2/,
    [
      [at(2, 0, false), pair("a", 2, 2, 1)],
      [at(4, 0, false), pair("a", 3, 4, 2)],
    ],
  ],
  ["a deletion of nothing", /did not exist/, [[at(2, 0, true), gone("a")]]],
  [
    "a deletion twice",
    /deleted again/,
    [
      [at(2, 0, false), pair("a", 2, 2, 1)],
      [at(3, 0, true), gone("a")],
      [at(4, 0, true), gone("a")],
    ],
  ],
  [
    "a mark that is no revision",
    /scheduledCompactRev.*not a revision/,
    [],
    [[SCHEDULED_COMPACT, new Uint8Array(3)]],
  ],
  [
    "the other mark",
    /finishedCompactRev.*not a revision/,
    [],
    [[FINISHED_COMPACT, new Uint8Array(0)]],
  ],
];

for (const [name, problem, records, marks] of DAMAGE) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(openWith(records, marks), (error) => {
      assert.ok(error instanceof StoreDamageError, String(error));
      assert.equal(error.path, "/store");
      assert.match(error.place, /^bucket (key, key [0-9a-f]+|meta, key \w+)$/);
      assert.match(error.message, problem);
      return true;
    });
  });
}

test("a compacted store may start in the middle of a key's history", async () => {
  const mvcc = await openWith(
    [
      [at(5, 0, false), pair("a", 2, 5, 3)],
      [at(5, 1, false), pair("c", 1, 5, 2)],
      [at(6, 0, true), gone("b")],
      [at(7, 0, false), pair("a", 2, 7, 4)],
    ],
    [[SCHEDULED_COMPACT, at(6, 0, false)]],
  );
  assert.deepEqual(
    [mvcc.currentRevision, mvcc.compactRevision, mvcc.keyCount, mvcc.isCompacting],
    [7, 6, 2, true],
  );
});

test("a store whose last records compaction dropped stands at the compact revision", async () => {
  const mvcc = await openWith(
    [],
    [
      [SCHEDULED_COMPACT, at(9, 0, false)],
      [FINISHED_COMPACT, at(9, 0, false)],
    ],
  );
  assert.deepEqual([mvcc.currentRevision, mvcc.compactRevision, mvcc.isCompacting], [9, 9, false]);
});

test("a record that vanishes under the index is damage", async () => {
  const backend = new Backend(
    await new MemoryKeyspaceOpener(new MemoryDisk()).open("/store", { create: true }),
  );
  backend.put(Bucket.key, at(2, 0, false), pair("a", 2, 2, 1));
  const mvcc = await Mvcc.open(backend, "/store");
  backend.delete(Bucket.key, at(2, 0, false));
  await backend.flush();
  assert.throws(
    () => mvcc.recordAt("a", 2),
    (error) => error instanceof StoreDamageError && error.place === "bucket key, revision 2.0",
  );
});

test("opening reports its progress", async () => {
  const backend = new Backend(
    await new MemoryKeyspaceOpener(new MemoryDisk()).open("/store", { create: true }),
  );
  const value = new Uint8Array(100_000);
  for (let i = 2; i < 12; i++) {
    backend.put(
      Bucket.key,
      at(i, 0, false),
      KeyValue.encode({
        key: fromLatin1(`k${i}`),
        createRevision: i,
        modRevision: i,
        version: 1,
        value,
      }),
    );
  }
  const reported: number[] = [];
  await Mvcc.open(backend, "/store", (records) => reported.push(records));
  assert.ok(reported.length > 2);
  assert.equal(reported.at(-1), 10);
  assert.deepEqual(
    reported,
    reported.toSorted((a, b) => a - b),
  );
});
