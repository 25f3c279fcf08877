/**
 * The backend over a keyspace: three layers that read as one, one batch at a time, and what a crash
 * or a failed write leaves.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Keyspace, SeededRandom } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromLatin1, toLatin1 } from "@quorate/proto";
import { Backend, Bucket, MAX_PENDING_OPS } from "../src/backend/backend.ts";
import { STORE_BOUNDS } from "../src/backend/bounds.ts";
import { HeldKeyspace } from "./held-keyspace.ts";

const bytes = fromLatin1;

async function memoryKeyspace(): Promise<{
  disk: MemoryDisk;
  keyspaces: MemoryKeyspaceOpener;
  keyspace: Keyspace;
}> {
  const disk = new MemoryDisk();
  const keyspaces = new MemoryKeyspaceOpener(disk);
  return { disk, keyspaces, keyspace: await keyspaces.open("/db", { create: true }) };
}

async function held(): Promise<{ backend: Backend; keyspace: HeldKeyspace }> {
  const keyspace = new HeldKeyspace((await memoryKeyspace()).keyspace);
  return { backend: new Backend(keyspace), keyspace };
}

function textOf(backend: Backend, key: string): string | undefined {
  const value = backend.get(Bucket.key, bytes(key));
  return value === undefined ? undefined : toLatin1(value);
}

test("reads see the collecting batch before the one on its way before the disk", async () => {
  const { backend, keyspace } = await held();
  for (const key of ["a", "b", "c", "d"]) backend.put(Bucket.key, bytes(key), bytes("disk"));
  const first = backend.flush();
  await keyspace.release();
  await first;
  for (const key of ["b", "c", "d", "e"]) backend.put(Bucket.key, bytes(key), bytes("flushing"));
  backend.delete(Bucket.key, bytes("d"));
  const second = backend.flush();
  await keyspace.waiting();
  backend.put(Bucket.key, bytes("c"), bytes("active"));
  backend.put(Bucket.key, bytes("d"), bytes("again"));
  backend.delete(Bucket.key, bytes("e"));
  const seen = () => ["a", "b", "c", "d", "e", "f"].map((key) => textOf(backend, key));
  const expected = ["disk", "flushing", "active", "again", undefined, undefined];
  assert.deepEqual(seen(), expected);
  await keyspace.release();
  await second;
  assert.deepEqual(seen(), expected);
  const third = backend.flush();
  await keyspace.release();
  await third;
  assert.deepEqual(seen(), expected);
});

test("a deletion hides what is below it in every layer", async () => {
  const { backend, keyspace } = await held();
  backend.put(Bucket.key, bytes("a"), bytes("x"));
  const first = backend.flush();
  await keyspace.release();
  await first;
  backend.delete(Bucket.key, bytes("a"));
  assert.equal(textOf(backend, "a"), undefined);
  const second = backend.flush();
  await keyspace.waiting();
  assert.equal(textOf(backend, "a"), undefined);
  await keyspace.release();
  await second;
  assert.equal(textOf(backend, "a"), undefined);
});

test("an empty value is a value", async () => {
  const { backend, keyspace } = await held();
  backend.put(Bucket.key, bytes("a"), bytes(""));
  assert.equal(textOf(backend, "a"), "");
  const flushed = backend.flush();
  await keyspace.waiting();
  assert.equal(textOf(backend, "a"), "");
  await keyspace.release();
  await flushed;
  assert.equal(textOf(backend, "a"), "");
});

test("equal keys of different buckets are different records, and a scan stays in its bucket", async () => {
  const { keyspace } = await memoryKeyspace();
  const backend = new Backend(keyspace);
  const names = Object.keys(Bucket) as (keyof typeof Bucket)[];
  for (const name of names)
    for (const key of ["", "\0", "m", "\xff\xff"])
      backend.put(Bucket[name], bytes(key), bytes(`${name} ${key}`));
  for (const name of names)
    assert.equal(toLatin1(backend.get(Bucket[name], bytes("m"))!), `${name} m`);
  const snapshot = await backend.snapshot();
  for (const name of names) {
    const found: string[] = [];
    for await (const slice of snapshot.scan(Bucket[name]))
      for (const [, value] of slice) found.push(toLatin1(value));
    assert.deepEqual(
      found,
      ["", "\0", "m", "\xff\xff"].map((key) => `${name} ${key}`),
    );
  }
  await snapshot.close();
  await backend.close({ flush: false });
});

test("STORE-1: one batch at a time is on its way, and flush waits for the changes of its own call", async () => {
  const { backend, keyspace } = await held();
  const done: string[] = [];
  backend.put(Bucket.key, bytes("a"), bytes("1"));
  const first = backend.flush().then(() => done.push("first"));
  await keyspace.waiting();
  backend.put(Bucket.key, bytes("b"), bytes("2"));
  const second = backend.flush().then(() => done.push("second"));
  const third = backend.flush().then(() => done.push("third"));
  assert.equal(keyspace.writes.length, 1);
  await keyspace.release();
  await first;
  await keyspace.waiting();
  assert.deepEqual(done, ["first"]);
  assert.deepEqual(
    keyspace.writes.map((batch) => batch.length),
    [1, 1],
  );
  await keyspace.release();
  await second;
  await third;
  // The third had nothing left to write.
  assert.equal(keyspace.writes.length, 2);
});

test("the bound by count may be lower", async () => {
  const { keyspace } = await held();
  const backend = new Backend(keyspace, 2);
  backend.put(Bucket.key, bytes("a"), bytes("v"));
  assert.deepEqual([backend.isDue, backend.isBusy], [false, false]);
  backend.put(Bucket.key, bytes("b"), bytes("v"));
  assert.deepEqual([backend.isDue, backend.isFull], [true, false]);
});

test("the bound by count: a full batch behind one on its way says stop", async () => {
  const { backend, keyspace } = await held();
  const value = bytes("v");
  for (let i = 0; i < MAX_PENDING_OPS - 1; i++) backend.put(Bucket.key, bytes(`${i}`), value);
  assert.equal(backend.isDue, false);
  backend.put(Bucket.key, bytes("last"), value);
  assert.equal(backend.pendingOps, MAX_PENDING_OPS);
  assert.equal(backend.isDue, true);
  assert.equal(backend.isFull, false);
  const first = backend.flush();
  await keyspace.waiting();
  assert.equal(backend.pendingOps, 0);
  const half = MAX_PENDING_OPS / 2;
  for (let i = 1; i < half; i++) backend.delete(Bucket.key, bytes(`${i}`));
  assert.equal(backend.isBusy, false);
  backend.delete(Bucket.key, bytes(`${half}`));
  assert.equal(backend.isBusy, true);
  assert.equal(backend.isFull, false);
  for (let i = half; i < MAX_PENDING_OPS; i++) backend.delete(Bucket.key, bytes(`x${i}`));
  assert.equal(backend.isFull, true);
  await keyspace.release();
  await first;
  assert.equal(backend.isFull, false);
  assert.equal(backend.isBusy, false);
});

test("the bound by bytes: large values make a batch due long before the count", async () => {
  const { backend, keyspace } = await held();
  const value = new Uint8Array(STORE_BOUNDS.pendingBytes / 4);
  for (let i = 0; i < 4; i++) {
    assert.equal(backend.isDue, false);
    backend.put(Bucket.key, bytes(`${i}`), value);
  }
  assert.equal(backend.isDue, true);
  const first = backend.flush();
  await keyspace.waiting();
  assert.equal(backend.pendingBytes, 0);
  assert.equal(backend.isFull, false);
  await keyspace.release();
  await first;
});

test("what beforeFlush puts goes into the same batch", async () => {
  const { backend, keyspace } = await held();
  let index = 0;
  backend.beforeFlush = () => backend.put(Bucket.meta, bytes("index"), bytes(`${index}`));
  index = 7;
  backend.put(Bucket.key, bytes("a"), bytes("x"));
  const flushed = backend.flush();
  await keyspace.waiting();
  assert.deepEqual(
    keyspace.writes[0].map(({ key, value }) => [toLatin1(key), value && toLatin1(value)]),
    [
      ["ka", "x"],
      ["mindex", "7"],
    ],
  );
  await keyspace.release();
  await flushed;
});

test("a snapshot shows the state of its call, whatever is written afterwards", async () => {
  const { keyspace } = await memoryKeyspace();
  const backend = new Backend(keyspace);
  backend.put(Bucket.key, bytes("a"), bytes("old"));
  const taken = backend.snapshot();
  const snapshot = await taken;
  backend.put(Bucket.key, bytes("a"), bytes("new"));
  backend.put(Bucket.key, bytes("b"), bytes("new"));
  await backend.flush();
  const found: string[] = [];
  for await (const slice of snapshot.scan(Bucket.key))
    for (const [key, value] of slice) found.push(`${toLatin1(key)}=${toLatin1(value)}`);
  assert.deepEqual(found, ["a=old"]);
  await snapshot.close();
  await backend.close({ flush: true });
});

test("a failed write is for good, and no later flush pretends otherwise", async () => {
  const { keyspaces, keyspace } = await memoryKeyspace();
  const backend = new Backend(keyspace);
  keyspaces.fault = () => "NoSpace";
  backend.put(Bucket.key, bytes("a"), bytes("1"));
  await assert.rejects(backend.flush(), { code: "NoSpace" });
  keyspaces.fault = undefined;
  backend.put(Bucket.key, bytes("b"), bytes("2"));
  await assert.rejects(backend.flush(), { code: "NoSpace" });
  await assert.rejects(backend.snapshot(), { code: "NoSpace" });
  // What was on its way is still read: the member that stops now answers nothing wrong before it
  // does.
  assert.equal(textOf(backend, "a"), "1");
  await backend.close({ flush: true });
  assert.equal(
    toText((await keyspaces.open("/db", { create: false })).get(bytes("ka"))),
    undefined,
  );
});

function toText(value: Uint8Array | undefined): string | undefined {
  return value === undefined ? undefined : toLatin1(value);
}

test("a crash keeps a batch whole or not at all", async () => {
  const outcomes = new Set<string>();
  for (let seed = 0n; seed < 20n; seed++) {
    const { disk, keyspaces, keyspace } = await memoryKeyspace();
    const backend = new Backend(keyspace);
    backend.put(Bucket.key, bytes("a"), bytes("1"));
    backend.put(Bucket.key, bytes("b"), bytes("1"));
    await backend.flush();
    backend.put(Bucket.key, bytes("a"), bytes("2"));
    backend.delete(Bucket.key, bytes("b"));
    void backend.flush();
    await Promise.resolve();
    disk.syncDir("/");
    disk.crash(new SeededRandom(seed));
    const after = await keyspaces.open("/db", { create: false });
    outcomes.add(`${toText(after.get(bytes("ka")))} ${toText(after.get(bytes("kb")))}`);
  }
  assert.deepEqual([...outcomes].sort(), ["1 1", "2 undefined"]);
});

test("the revision that is written follows the batches, not what was put since", async () => {
  const { backend, keyspace } = await held();
  backend.putRecord(4, 0, false, { key: bytes("a") });
  const first = backend.flush();
  await keyspace.waiting();
  backend.putRecord(5, 0, false, { key: bytes("b") });
  assert.equal(backend.writtenRevision, 0);
  await keyspace.release();
  await first;
  assert.equal(backend.writtenRevision, 4);
  const second = backend.flush();
  await keyspace.waiting();
  await keyspace.release();
  await second;
  assert.equal(backend.writtenRevision, 5);
});
