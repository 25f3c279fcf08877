import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock, MemoryDisk } from "@quorate/host/testing";
import { raftpb } from "@quorate/proto";
import { Wal } from "@quorate/wal";
import { logEndOf } from "../src/log-reader.ts";

const DIR = "/data/wal";

/**
 * A log with the entries 1 to 5 of term 2, committed up to 5, and the mark of a snapshot at 9 that
 * a leader sent.
 */
async function logWithReceivedMark(disk: MemoryDisk): Promise<Wal> {
  disk.makeDir("/data");
  const wal = Wal.create(disk, DIR, new Uint8Array([1]), {
    clock: new ManualClock(),
    logger: silentLogger,
  });
  const entries = [1, 2, 3, 4, 5].map((index) => raftpb.Entry.create({ index, term: 2 }));
  wal.append({ term: 2, vote: 1n, commit: 5 }, entries);
  await wal.saveSnapshot({
    index: 9,
    term: 3,
    confState: raftpb.ConfState.create({ voters: [1n, 2n, 3n] }),
  });
  return wal;
}

test("a received snapshot that the log does not call committed is no part of it: the member starts without it", async () => {
  const disk = new MemoryDisk();
  const wal = await logWithReceivedMark(disk);
  await wal.close();
  const end = logEndOf(disk, DIR)!;
  assert.equal(end.lastIndex, 5);
  assert.equal(end.beginsAt, 0);
  assert.equal(end.termOf(5), 2);
});

test("a received snapshot counts from the state that commits it", async () => {
  const disk = new MemoryDisk();
  const wal = await logWithReceivedMark(disk);
  wal.append({ term: 3, vote: 0n, commit: 9 }, []);
  await wal.sync();
  await wal.close();
  const end = logEndOf(disk, DIR)!;
  assert.equal(end.lastIndex, 9);
  assert.equal(end.beginsAt, 9);
});
