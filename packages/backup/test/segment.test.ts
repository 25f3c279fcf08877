/**
 * Segment files: records are read as written, an end torn by a crash is skipped, and anything else
 * is damage with its offset.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  BackupError,
  type BackupRecord,
  followState,
  MAX_LEASES_PER_RECORD,
  MAX_SEGMENT_BYTES,
  readCatalog,
  readSegment,
  SegmentWriter,
} from "@quorate/backup";
import type { Disk } from "@quorate/host";
import { MemoryDisk } from "@quorate/host/testing";
import { fromUtf8, KeyValue } from "@quorate/proto";
import { encodeRecord, MAX_RECORD_BYTES, RECORD_HEAD_BYTES } from "../src/format.ts";

const MAGIC_BYTES = 8;
const DIR = "/b";
const PATH = "/b/segment-00000001.qbk";
/** A segment of the version without "synced" records, and one with them. */
const oldFixture = join(import.meta.dirname, "fixtures/segment-1.qbk");
const fixture = join(import.meta.dirname, "fixtures/segment-2.qbk");

const put = (key: string, revision: number): Uint8Array =>
  KeyValue.encode({
    key: fromUtf8(key),
    value: fromUtf8("v"),
    createRevision: revision,
    modRevision: revision,
    version: 1,
    lease: 0n,
  });

/** One record of every kind, with values at the ends of their ranges. */
const records: readonly BackupRecord[] = [
  { kind: "head", clusterId: 0xffff_ffff_ffff_ffffn, revision: 4, timeMs: 1_767_225_600_000 },
  {
    kind: "leases",
    timeMs: 1_767_225_600_001,
    all: true,
    leases: new Map([
      [-1n, 9_000_000_000],
      [7n, 60],
    ]),
  },
  { kind: "leases", timeMs: 1_767_225_600_002, all: false, leases: new Map([[7n, 0]]) },
  {
    kind: "changes",
    timeMs: 1_767_225_600_003,
    revision: 5,
    changes: [
      { deleted: false, record: put("a", 5) },
      { deleted: true, record: KeyValue.encode({ key: fromUtf8("b") }) },
    ],
  },
  { kind: "progress", timeMs: 1_767_225_660_000, revision: 5 },
  { kind: "hash", timeMs: 1_767_225_660_001, revision: 5, compactRevision: -1, hash: 0xffff_ffff },
  {
    kind: "changes",
    timeMs: 1_767_225_660_002,
    revision: 6,
    changes: [{ deleted: false, record: put("c", 6) }],
  },
];

/**
 * A segment with the records above, each synced; `ends` and `all` include the "synced" records
 * between them.
 */
async function written(): Promise<{
  disk: MemoryDisk;
  bytes: Uint8Array;
  ends: number[];
  all: BackupRecord[];
}> {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  const writer = SegmentWriter.create(disk, DIR, 1, records[0] as BackupRecord & { kind: "head" });
  for (const record of records.slice(1)) {
    writer.append(record);
    await writer.sync();
  }
  writer.close();
  const bytes = disk.readAll(PATH).slice();
  const ends: number[] = [];
  for (let at = MAGIC_BYTES; at < bytes.length; ends.push(at))
    at += RECORD_HEAD_BYTES + Buffer.from(bytes).readUInt32BE(at);
  const all = [...readSegment(disk, PATH)];
  assert.equal(all.length, ends.length);
  return { disk, bytes, ends, all };
}

function reading(bytes: Uint8Array): BackupRecord[] {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  const file = disk.open(PATH, "create");
  file.write([bytes], 0);
  file.close();
  return [...readSegment(disk, PATH)];
}

describe("segments", () => {
  test('every kind of record is read as written, and "synced" records cover those before them', async () => {
    const { all, ends } = await written();
    assert.deepEqual(
      all.filter(({ kind }) => kind !== "synced"),
      records,
    );
    for (const [i, record] of all.entries()) {
      assert.equal(record.kind === "synced", i % 2 === 1);
      if (record.kind === "synced")
        assert.deepEqual([record.offset, record.timeMs], [ends[i - 1], all[i - 1].timeMs]);
    }
  });

  test("cut at any byte, the complete records before it are read", async () => {
    const { bytes, ends, all } = await written();
    for (let cut = 0; cut <= bytes.length; cut++) {
      const whole = ends.filter((end) => end <= cut).length;
      assert.deepEqual(reading(bytes.slice(0, cut)), all.slice(0, whole), `cut at ${cut}`);
      const zeros = new Uint8Array(bytes.length);
      zeros.set(bytes.subarray(0, cut));
      const before = ends.filter((end) => end <= cut);
      // Zeros at the end, as a file system may leave them; half a record before them looks like
      // damage.
      if (before.at(-1) === cut)
        assert.deepEqual(reading(zeros), all.slice(0, before.length), `zeros from ${cut}`);
    }
  });

  test("a flipped bit is damage with its offset, or cuts off the end", async () => {
    const { bytes, ends, all } = await written();
    for (let at = 8; at < bytes.length; at++) {
      const bad = bytes.slice();
      bad[at] ^= 1 << (at % 8);
      const record = ends.findIndex((end) => at < end);
      const start = record === 0 ? 8 : ends[record - 1];
      try {
        const found = reading(bad);
        assert.deepEqual(found, all.slice(0, found.length), `byte ${at}`);
        assert.ok(found.length <= record, `byte ${at} changed and was not detected`);
        assert.equal(record, all.length - 1, `byte ${at}: records behind it were skipped`);
      } catch (error) {
        assert.ok(error instanceof BackupError, String(error));
        assert.match(
          error.message,
          new RegExp(`^/b/segment-00000001\\.qbk: damaged at byte ${start}: `),
        );
      }
    }
    assert.throws(
      () => reading(fromUtf8("something else, long enough")),
      /damaged at byte 0: a segment of a backup begins with QRMBKUP1/,
    );
  });

  test("revisions within a segment have no gap, and its state lets the next run continue", async () => {
    const { disk } = await written();
    const catalog = readCatalog(disk, DIR);
    const state = followState(disk, catalog)!;
    assert.deepEqual(
      [state.revision, state.clusterId, state.leases],
      [6, 0xffff_ffff_ffff_ffffn, new Map([[-1n, 9_000_000_000]])],
    );
    assert.deepEqual(state.changes, (records.at(-1) as { changes: unknown }).changes);
    const writer = SegmentWriter.create(disk, DIR, 2, {
      kind: "head",
      clusterId: 3n,
      revision: 6,
      timeMs: 0,
    });
    const path = `${DIR}/segment-00000002.qbk`;
    const later = { kind: "changes", timeMs: 0, revision: 8, changes: [] } as const;
    writer.append(later);
    writer.close();
    const at = disk.stat(path)!.sizeBytes - encodeRecord(later).length;
    assert.throws(
      () => readCatalog(disk, DIR),
      new RegExp(
        `${path}: damaged at byte ${at}: revision 8 follows 6, and the changes between are missing; .*truncate -s ${at} ${path}`,
      ),
    );
  });

  test("segments of two clusters in one directory are refused", async () => {
    const { disk } = await written();
    SegmentWriter.create(disk, DIR, 2, {
      kind: "head",
      clusterId: 3n,
      revision: 6,
      timeMs: 0,
    }).close();
    assert.throws(
      () => readCatalog(disk, DIR),
      /backups of two clusters: .*segment-00000001\.qbk is of cluster ffffffffffffffff, .* of 3;/,
    );
  });

  test("a writer reports when it is full", async () => {
    const disk = new MemoryDisk();
    disk.makeDir(DIR);
    const writer = SegmentWriter.create(
      disk,
      DIR,
      1,
      records[0] as BackupRecord & { kind: "head" },
    );
    const record = new Uint8Array(MAX_SEGMENT_BYTES / 4);
    for (let revision = 5; !writer.isFull; revision++) {
      assert.ok(revision <= 8);
      writer.append({
        kind: "changes",
        timeMs: 0,
        revision,
        changes: [{ deleted: false, record }],
      });
    }
    await writer.sync();
    assert.ok(writer.sizeBytes >= MAX_SEGMENT_BYTES && writer.sizeBytes < MAX_SEGMENT_BYTES * 1.5);
    assert.equal(MAX_LEASES_PER_RECORD, 10_000);
    writer.close();
  });

  test("segments that earlier versions wrote are read", async () => {
    const { bytes, all } = await written();
    if (process.env["QUORATE_WRITE_FIXTURES"] === "1") writeFileSync(fixture, bytes);
    const kept = new Uint8Array(readFileSync(fixture));
    assert.deepEqual(reading(kept), all);
    assert.deepEqual(bytes, kept);
    assert.deepEqual(reading(new Uint8Array(readFileSync(oldFixture))), records);
  });

  test("unsynced records may be lost in any order: the records before them are read", async () => {
    const disk = new MemoryDisk();
    disk.makeDir(DIR);
    const writer = SegmentWriter.create(
      disk,
      DIR,
      1,
      records[0] as BackupRecord & { kind: "head" },
    );
    writer.append(records[1]);
    await writer.sync();
    const ends = [writer.sizeBytes];
    for (const record of records.slice(2)) {
      writer.append(record);
      ends.push(writer.sizeBytes);
    }
    const bytes = disk.readAll(PATH);
    for (let i = 1; i < ends.length; i++) {
      const torn = bytes.slice();
      torn.fill(0, ends[i] - 1, ends[i]);
      torn[ends[i - 1] + 8] = 0xff;
      const found = reading(torn).filter(({ kind }) => kind !== "synced");
      assert.deepEqual(found, records.slice(0, 1 + i), `record ${i + 1}`);
    }
    const bad = bytes.slice();
    bad[ends[0] - 1] ^= 1;
    assert.throws(
      () => reading(bad),
      /damaged at byte \d+: a record's length or checksum is wrong, and it had been synced/,
    );
  });

  test("a record with a length beyond the limit is not read into memory", () => {
    const synced = encodeRecord({ kind: "synced", timeMs: 0, offset: 2 ** 32 });
    const start = Buffer.concat([Buffer.from("QRMBKUP1"), encodeRecord(records[0])]);
    const long = Buffer.alloc(RECORD_HEAD_BYTES);
    long.writeUInt32BE(MAX_RECORD_BYTES + 1, 0);
    const bytes = Buffer.concat([start, long, synced]);
    const file = {
      path: PATH,
      size: () => 2 * MAX_RECORD_BYTES,
      close: () => {},
      read(target: Uint8Array, position: number): number {
        assert.ok(target.length <= 128 * 1024, `${target.length} bytes at once`);
        target.fill(0);
        if (position < bytes.length) target.set(bytes.subarray(position, position + target.length));
        return target.length;
      },
    };
    const disk = { open: () => file } as unknown as Disk;
    assert.throws(
      () => [...readSegment(disk, PATH)],
      new RegExp(`damaged at byte ${start.length}: `),
    );
  });
});
