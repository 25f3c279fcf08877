/**
 * Random bytes as segments: whatever a segment holds, even records with right checksums, it is
 * read, its end is cut off, or it is damaged in a way that names the file. Nothing else is thrown,
 * and no number that is none comes out of it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BackupError, type BackupRecord, readCatalog, readSegment } from "@quorate/backup";
import { SeededRandom } from "@quorate/host";
import { MemoryDisk } from "@quorate/host/testing";
import { crc32c, fromLatin1, writeU32BE } from "@quorate/proto";
import { encodeRecord, MAGIC, RECORD_HEAD_BYTES } from "../src/format.ts";

const DIR = "/b";
const PATH = `${DIR}/segment-00000001.qbk`;
const HEAD = encodeRecord({ kind: "head", clusterId: 7n, revision: 4, timeMs: 1000 });

const some = (random: SeededRandom, length: number): Uint8Array =>
  Uint8Array.from({ length }, () => random.below(256));

/** A record whose length and checksum are right, and whose content is random. */
function made(random: SeededRandom): Uint8Array {
  const payload = some(random, random.below(60));
  // Numbers near 0 and lengths within the payload get further.
  for (let i = 0; i < payload.length; i++) if (random.below(4) > 0) payload[i] = 0;
  return recordOf(random.below(8), payload);
}

function recordOf(kind: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(RECORD_HEAD_BYTES + payload.length);
  bytes[8] = kind;
  bytes.set(payload, RECORD_HEAD_BYTES);
  writeU32BE(bytes, payload.length, 0);
  writeU32BE(bytes, crc32c(0, bytes, 8), 4);
  return bytes;
}

function segment(random: SeededRandom): Uint8Array {
  const parts = [random.below(50) === 0 ? some(random, 8) : fromLatin1(MAGIC)];
  if (random.below(10) > 0) parts.push(HEAD);
  for (let i = random.below(6); i > 0; i--)
    parts.push(random.below(3) === 0 ? some(random, random.below(200)) : made(random));
  return Buffer.concat(parts);
}

function numbersOf(record: BackupRecord): number[] {
  const numbers = Object.values(record).filter((value) => typeof value === "number");
  return record.kind === "leases" ? [...numbers, ...record.leases.values()] : numbers;
}

test("random bytes and random records with right checksums", () => {
  const random = new SeededRandom(20_261_123n);
  const seen = { whole: 0, damaged: 0, records: 0 };
  for (let i = 0; i < 4000; i++) {
    const disk = new MemoryDisk();
    disk.makeDir(DIR);
    const file = disk.open(PATH, "create");
    file.write([segment(random)], 0);
    file.close();
    const records: BackupRecord[] = [];
    try {
      for (const record of readSegment(disk, PATH)) records.push(record);
      seen.whole++;
    } catch (error) {
      assert.ok(error instanceof BackupError, `case ${i}: ${(error as Error).stack}`);
      assert.ok(error.message.startsWith(PATH), error.message);
      seen.damaged++;
    }
    seen.records += records.length;
    assert.ok(records.flatMap(numbersOf).every(Number.isSafeInteger), JSON.stringify({ i }));
    try {
      readCatalog(disk, DIR);
    } catch (error) {
      assert.ok(error instanceof BackupError, `case ${i}: ${(error as Error).stack}`);
    }
  }
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 300, `${what}: ${count}`);
});

test("a list of users with a right checksum that holds none is damage, with its place", () => {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  // Behind times and a flag: a user of one byte, which is no authpb.User.
  const list = Uint8Array.from([...new Uint8Array(17), 1, 0, 0, 0, 1, 0xff]);
  const file = disk.open(PATH, "create");
  file.write([fromLatin1(MAGIC), HEAD, recordOf(7, list)], 0);
  file.close();
  const at = MAGIC.length + HEAD.length;
  assert.throws(() => [...readSegment(disk, PATH)], {
    name: "BackupError",
    message: new RegExp(`^${PATH}: damaged at byte ${at}: authpb.User: .*truncate -s ${at} `),
  });
});
