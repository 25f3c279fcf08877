/** Crashes and injected faults of an in-memory keyspace. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { type Keyspace, SeededRandom } from "@quorate/host";
import {
  ManualClock,
  MemoryDisk,
  MemoryKeyspaceOpener,
  rejectsWithDiskError,
} from "@quorate/host/testing";

const key = (n: number) => Uint8Array.of(n);

async function keysOf(keyspace: Keyspace): Promise<number[]> {
  const keys: number[] = [];
  for await (const slice of keyspace.scan({})) for (const record of slice) keys.push(record[0][0]);
  return keys;
}

function durableDirectory(disk: MemoryDisk, path: string): void {
  disk.makeDir(path);
  disk.syncDir("/");
}

it("keeps acknowledged writes in a crash, and of the rest a prefix of whole batches", async () => {
  const outcomes = new Set<string>();
  for (let seed = 1n; seed <= 40n; seed++) {
    const clock = new ManualClock();
    const disk = new MemoryDisk();
    durableDirectory(disk, "/db");
    const opener = new MemoryKeyspaceOpener(disk, { clock, writeDelayMs: () => 5 });
    const keyspace = await opener.open("/db", { create: true });
    const first = keyspace.write([{ key: key(1), value: key(1) }]);
    assert.deepEqual(await keysOf(keyspace), [], "not visible before it is durable");
    await clock.advanceAsync(5);
    await first;
    const late: string[] = [];
    for (const n of [2, 4]) {
      const batch = [n, n + 1].map((k) => ({ key: key(k), value: key(k) }));
      void keyspace.write(batch).then(() => late.push(`${n}`));
    }
    await clock.advanceAsync(2);
    disk.crash(new SeededRandom(seed));
    await clock.advanceAsync(100);
    assert.deepEqual(late, [], "nothing is acknowledged after the crash");
    assert.throws(() => keyspace.get(key(1)), /closed/);
    outcomes.add((await keysOf(await opener.open("/db", { create: false }))).join());
  }
  assert.deepEqual([...outcomes].sort(), ["1", "1,2,3", "1,2,3,4,5"]);
});

it("follows its directory", async () => {
  const disk = new MemoryDisk();
  const opener = new MemoryKeyspaceOpener(disk);
  const keyspace = await opener.open("/new", { create: true });
  await keyspace.write([{ key: key(1), value: key(1) }]);
  await keyspace.close();
  await (await opener.open("/old", { create: true })).close();
  disk.remove("/old");
  disk.rename("/new", "/old");
  const moved = await opener.open("/old", { create: false });
  assert.deepEqual(await keysOf(moved), [1]);
  await rejectsWithDiskError(opener.open("/new", { create: false }), "NotFound");
  await moved.close();
});

it("refuses everything but close after a failed write, and reopens with the earlier records", async () => {
  const disk = new MemoryDisk();
  const opener = new MemoryKeyspaceOpener(disk);
  const keyspace = await opener.open("/db", { create: true });
  await keyspace.write([{ key: key(1), value: key(1) }]);
  opener.fault = ({ records }) => (records === 2 ? "NoSpace" : undefined);
  await rejectsWithDiskError(
    keyspace.write([
      { key: key(2), value: key(2) },
      { key: key(3), value: key(3) },
    ]),
    "NoSpace",
  );
  await rejectsWithDiskError(keyspace.write([{ key: key(4), value: key(4) }]), "NoSpace");
  await keyspace.close();
  assert.deepEqual(await keysOf(await opener.open("/db", { create: false })), [1]);
});

it("refuses to open a damaged store", async () => {
  const disk = new MemoryDisk();
  const opener = new MemoryKeyspaceOpener(disk);
  await (await opener.open("/db", { create: true })).close();
  opener.damage("/db");
  await rejectsWithDiskError(opener.open("/db", { create: true }), "Damaged");
});
