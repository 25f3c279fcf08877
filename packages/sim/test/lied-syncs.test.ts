/** Which errors of a log are excused by syncs that lied, and for how long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk } from "@quorate/host/testing";
import { WalDamageError } from "@quorate/wal";
import { LiedSyncs } from "../src/disk-faults.ts";

const LOST = "the checksum does not match";

function segment(sequence: number): string {
  return `${`${sequence}`.padStart(16, "0")}-${`${10 * sequence}`.padStart(16, "0")}.wal`;
}

const damage = (sequence: number, offset: number, reason = LOST) =>
  new WalDamageError("/wal", segment(sequence), offset, reason);

/** A lie about the second segment, from byte 512 on. */
function lied(): LiedSyncs {
  const syncs = new LiedSyncs();
  syncs.add(`/wal/${segment(2)}`, 512);
  return syncs;
}

test("a lie explains damage behind what was on the disk, and in later segments, and nowhere else", () => {
  const syncs = lied();
  assert.equal(syncs.explains(damage(2, 504)), false);
  assert.equal(syncs.explains(damage(2, 512)), true);
  assert.equal(syncs.explains(damage(3, 0, "the segment ends before its metadata")), true);
  assert.equal(syncs.explains(damage(1, 4096)), false);
  syncs.add(`/wal/${segment(2)}`, 256);
  syncs.add("/wal/4.tmp", 0);
  syncs.add(`/wal/${segment(1)}`, undefined);
  assert.equal(syncs.explains(damage(2, 504)), true);
  assert.equal(syncs.explains(damage(1, 4096)), false);
});

test("a lie explains only what a loss looks like", () => {
  const syncs = lied();
  const mark = `${LOST}, and byte 2048 says that 1024 bytes were on the disk`;
  assert.equal(syncs.explains(damage(2, 512, mark)), true);
  assert.equal(syncs.explains(damage(4, 0, "segment 3 is missing before it")), true);
  for (const reason of [
    "entry 9 follows entry 7",
    "the term goes back from 3 to 2",
    "the metadata differs from that of the first segment",
    "the record cannot be decoded: WireError: truncated",
  ])
    assert.equal(syncs.explains(damage(2, 512, reason)), false, reason);
});

test("a lie explains nothing more once the log was read after a loss of power", () => {
  const syncs = lied();
  syncs.wasRead();
  assert.equal(syncs.explains(damage(2, 512)), true, "the system still has it in memory");
  syncs.lostPower();
  assert.equal(syncs.explains(damage(2, 512)), true);
  syncs.wasRead();
  assert.equal(syncs.explains(damage(2, 512)), false);
});

test("a disk says from where on a file is not durable", () => {
  const disk = new MemoryDisk();
  const seen: (number | undefined)[] = [];
  disk.lies = (_path, from) => {
    seen.push(from);
    return false;
  };
  const file = disk.open("/file", "create");
  file.write([new Uint8Array(10_000).fill(1)], 0);
  file.dataSyncNow();
  file.write([new Uint8Array(10).fill(2)], 9000);
  file.dataSyncNow();
  file.dataSyncNow();
  assert.deepEqual(seen, [0, 8704, undefined]);
});
