/**
 * Exchanging the store's directory: whatever the step at which the machine stops, the old store or
 * the whole new one is there afterwards.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { dropIncoming, installReceived, recoverDirectories } from "../src/backend/directories.ts";
import { receiveSnapshot } from "../src/receive.ts";
import { Store } from "../src/store.ts";
import { applyEntry, Log } from "./store-log.ts";

const DIR = "/store";
/** The file in which a test notes the newest accepted snapshot, as the WAL does. */
const MARK = "/mark";

class Stopped extends Error {}

function logOf(length: number, value: string): Log {
  const log = new Log();
  for (let i = 0; i < length; i++) log.put(`k${i % 5}`, `${value}${i}`);
  return log;
}

async function sentBytes(log: Log): Promise<Uint8Array[]> {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  const store = await Store.open(new MemoryKeyspaceOpener(disk), DIR);
  for (const entry of log.entries) applyEntry(store, entry);
  const snapshot = await store.snapshot();
  const chunks: Uint8Array[] = [];
  for await (const chunk of snapshot.chunks) chunks.push(chunk);
  await snapshot.close();
  await store.close({ flush: true });
  return chunks;
}

async function* iterate(chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

/** A member's disk with a store of three entries. */
async function memberWithStore(): Promise<{ disk: MemoryDisk; keyspaces: MemoryKeyspaceOpener }> {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  disk.syncDir("/");
  const keyspaces = new MemoryKeyspaceOpener(disk);
  const store = await Store.open(keyspaces, DIR);
  for (const entry of logOf(3, "old").entries) applyEntry(store, entry);
  await store.close({ flush: true });
  disk.syncDir(DIR);
  return { disk, keyspaces };
}

function accepted(disk: MemoryDisk): number {
  return disk.stat(MARK) === undefined ? 0 : Number(new TextDecoder().decode(disk.readAll(MARK)));
}

test("a machine that stops at any step of an exchange has the old or the new store", async () => {
  const chunks = await sentBytes(logOf(20, "new"));
  const outcomes = { old: 0, new: 0, installedAtStart: 0 };
  for (let step = 0, finished = false; !finished; step++) {
    for (const seed of [1n, 2n, 3n, 4n]) {
      const { disk, keyspaces } = await memberWithStore();
      let steps = 0;
      disk.fault = () => {
        if (steps++ >= step) throw new Stopped();
        return undefined;
      };
      keyspaces.fault = () => (steps++ >= step ? "Io" : undefined);
      try {
        await receiveSnapshot({ disk, keyspaces }, DIR, 20, iterate(chunks));
        disk.replace(MARK, new TextEncoder().encode("20"));
        installReceived(disk, DIR, 20);
        finished = true;
      } catch (error) {
        // What is left of the steps, cleaning up among them, does not happen.
        assert.ok(error instanceof Stopped, String(error));
      }
      disk.fault = undefined;
      keyspaces.fault = undefined;
      disk.crash(new SeededRandom(seed * 1000n + BigInt(step)));
      const mark = accepted(disk);
      if (recoverDirectories(disk, DIR, mark)) outcomes.installedAtStart++;
      const store = await Store.open(keyspaces, DIR);
      assert.equal(
        store.position.index,
        mark === 20 ? 20 : 3,
        `step ${step}, seed ${seed}: ${disk.list(DIR)}`,
      );
      outcomes[mark === 20 ? "new" : "old"]++;
      await store.close({ flush: true });
      assert.deepEqual(disk.list(DIR), ["db"]);
    }
  }
  assert.ok(
    outcomes.old > 0 && outcomes.new > 0 && outcomes.installedAtStart > 0,
    JSON.stringify(outcomes),
  );
});

test("a machine that stops while it recovers recovers at the next start", async () => {
  const chunks = await sentBytes(logOf(20, "new"));
  for (let step = 0, finished = false; !finished; step++) {
    const { disk, keyspaces } = await memberWithStore();
    await receiveSnapshot({ disk, keyspaces }, DIR, 20, iterate(chunks));
    let steps = 0;
    disk.fault = () => {
      if (steps++ >= step) throw new Stopped();
      return undefined;
    };
    try {
      recoverDirectories(disk, DIR, 20);
      finished = true;
    } catch (error) {
      assert.ok(error instanceof Stopped);
    }
    disk.fault = undefined;
    disk.crash(new SeededRandom(BigInt(step)));
    recoverDirectories(disk, DIR, 20);
    const store = await Store.open(keyspaces, DIR);
    assert.equal(store.position.index, 20);
    await store.close({ flush: true });
  }
});

test("a received store that the log does not know of is removed", async () => {
  const chunks = await sentBytes(logOf(20, "new"));
  for (const mark of [0, 3, 19, 21]) {
    const { disk, keyspaces } = await memberWithStore();
    await receiveSnapshot({ disk, keyspaces }, DIR, 20, iterate(chunks));
    assert.equal(recoverDirectories(disk, DIR, mark), false);
    assert.deepEqual(disk.list(DIR), ["db"]);
    const store = await Store.open(keyspaces, DIR);
    assert.equal(store.position.index, 3);
    await store.close({ flush: true });
  }
});

test("dropIncoming takes what is of no use, and leaves the store in use and one that may be about to take its place", async () => {
  const { disk, keyspaces } = await memberWithStore();
  await receiveSnapshot({ disk, keyspaces }, DIR, 20, iterate(await sentBytes(logOf(20, "new"))));
  disk.makeDir(`${DIR}/db.7.tmp`);
  dropIncoming(disk, DIR, 19);
  assert.deepEqual(disk.list(DIR), ["db", "db.20.recv"]);
  dropIncoming(disk, DIR, 20);
  assert.deepEqual(disk.list(DIR), ["db"]);
});

test("nothing to recover: a directory that is empty, or holds the store alone", async () => {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  assert.equal(recoverDirectories(disk, DIR, 0), false);
  assert.deepEqual(disk.list(DIR), []);
  const { disk: used } = await memberWithStore();
  assert.equal(recoverDirectories(used, DIR, 3), false);
  assert.deepEqual(used.list(DIR), ["db"]);
});

test("a store that was set aside for one that never came is brought back", async () => {
  const { disk, keyspaces } = await memberWithStore();
  disk.rename(`${DIR}/db`, `${DIR}/db.old`);
  assert.equal(recoverDirectories(disk, DIR, 0), false);
  assert.deepEqual(disk.list(DIR), ["db"]);
  const store = await Store.open(keyspaces, DIR);
  assert.equal(store.position.index, 3);
  await store.close({ flush: true });
});

test("what an earlier exchange left behind does not stand in the way of the next", async () => {
  const { disk, keyspaces } = await memberWithStore();
  disk.makeDir(`${DIR}/db.old/some`);
  await receiveSnapshot({ disk, keyspaces }, DIR, 20, iterate(await sentBytes(logOf(20, "new"))));
  installReceived(disk, DIR, 20);
  assert.deepEqual(disk.list(DIR), ["db"]);
  const store = await Store.open(keyspaces, DIR);
  assert.equal(store.position.index, 20);
  await store.close({ flush: true });
});
