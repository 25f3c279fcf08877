/**
 * Reading changes again: whole revisions, in order, from any to any, however the keyspace cuts its
 * slices.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromLatin1 } from "@quorate/proto";
import { Backend } from "../src/backend/backend.ts";
import { type Change, Mvcc } from "../src/mvcc/index.ts";

async function opened(): Promise<Mvcc> {
  const clock = new ManualClock();
  const keyspace = await new MemoryKeyspaceOpener(new MemoryDisk({ clock })).open("/store", {
    create: true,
  });
  return Mvcc.open(new Backend(keyspace), "/store");
}

test("history repeats the reported changes, in slices of whole revisions", async () => {
  const mvcc = await opened();
  const reported: Change[] = [];
  mvcc.onChange = (change) => reported.push(change);
  for (let i = 0; i < 3000; i++) {
    const txn = mvcc.begin();
    // Some revisions are longer than one slice of a scan.
    for (let sub = i % 1000 === 7 ? 5000 : i % 4; sub >= 0; sub--) {
      const key = `k${sub}`;
      if (i % 5 === 4) txn.delete(key);
      else txn.put(fromLatin1(key), key, fromLatin1("v".repeat(i % 100)), 0n);
    }
    txn.commit();
  }
  for (const [first, last] of [
    [2, 3001],
    [1, 500],
    [9, 9],
    [2500, 3001],
  ]) {
    const read: Change[] = [];
    let through = first - 1;
    for await (const slice of mvcc.history(first, last)) {
      const mains = slice.changes.map(({ main }) => main);
      assert.ok(mains.every((main) => main > through && main <= slice.through + 1));
      // Only the last revision of a slice may go on in the next.
      if (mains.includes(slice.through + 1)) assert.equal(mains.at(-1), slice.through + 1);
      through = slice.through;
      read.push(...slice.changes);
    }
    assert.equal(through, last);
    assert.deepEqual(
      read,
      reported.filter(({ main }) => main >= first && main <= last),
    );
  }
  assert.throws(() => mvcc.history(1, 3002), /MVCC-8/);
});
