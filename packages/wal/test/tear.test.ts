/** Single cases of the line between a torn write and damage. */
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { type MemoryDisk, SECTOR_BYTES, throwsDiskError } from "@quorate/host/testing";
import { etcdserverpb } from "@quorate/proto";
import { memberOf, verifyWal, Wal, WalDamageError } from "@quorate/wal";
import { entry, memoryPlace, options, plain, START, state } from "./support.ts";

const SEGMENT_BYTES = 16 << 10;

describe("where reading stops", () => {
  let disk: MemoryDisk;
  let dir = "";
  let path = "";
  let wal: Wal;

  beforeEach(() => {
    const place = memoryPlace();
    disk = place.disk;
    dir = `${place.root}/wal`;
    wal = Wal.create(disk, dir, new Uint8Array([1]), options(SEGMENT_BYTES));
    path = `${dir}/${wal.segmentNames[0]}`;
  });

  /** Overwrites bytes of the segment, durably. */
  const patch = (from: number, bytes: Uint8Array) => {
    const content = disk.readAll(path);
    content.set(bytes, from);
    disk.install(path, content);
  };
  const loseSector = (number: number) => patch(number * SECTOR_BYTES, new Uint8Array(SECTOR_BYTES));
  const open = () => Wal.open(disk, dir, START, options(SEGMENT_BYTES));
  const refused = (offset: number, reason: RegExp) =>
    assert.throws(open, (error) => {
      assert.ok(error instanceof WalDamageError, String(error));
      assert.equal(error.path, path);
      assert.equal(error.offset, offset, error.message);
      assert.match(error.reason, reason);
      return true;
    });

  it("a lost sector in a batch that nothing vouches for is a tear, though good records follow", async () => {
    wal.append(state(1, 0), [entry(1)]);
    await wal.sync();
    wal.append(undefined, [
      entry(2, 1, 1200),
      entry(3, 1, 100),
      entry(4, 1, 100),
      entry(5, 1, 100),
    ]);
    await wal.close();
    loseSector(1);
    const { tornBytes } = verifyWal(disk, dir);
    assert.ok(tornBytes > 1500, `${tornBytes}`);
    const opened = open();
    assert.deepEqual(plain(opened.entries), plain([entry(1)]));
    assert.equal(opened.droppedTailBytes, tornBytes);
    await opened.wal.close();
    assert.equal(verifyWal(disk, dir).tornBytes, 0);
  });

  it("the same lost sector is damage once a later batch says that it was on the disk", async () => {
    wal.append(state(1, 0), [entry(1)]);
    await wal.sync();
    const start = verifyWal(disk, dir).endOffset;
    wal.append(undefined, [entry(2, 1, 1200)]);
    await wal.sync();
    const end = verifyWal(disk, dir).endOffset;
    wal.append(undefined, [entry(3, 1, 100)]);
    await wal.close();
    loseSector(1);
    refused(
      start + 32,
      new RegExp(
        `the checksum does not match, and byte ${end} says that ${end} bytes were on the disk`,
      ),
    );
  });

  it("a mark inside a value is believed only where a record could stand, and never beyond its own place", async () => {
    wal.append(state(1, 0), [entry(1)]);
    await wal.sync();
    wal.append(undefined, [entry(2, 1, 1200)]);
    await wal.sync();
    wal.append(undefined, [entry(3)]);
    const whole = disk.readAll(path);
    const at = whole.findIndex(
      (byte, i) => i > 1000 && byte !== 0 && whole[i + 8] === 0x08 && whole[i + 9] === 4,
    );
    const copy = whole.slice(at, at + 40);
    await wal.close();
    // The same frame, earlier than the length in it.
    disk.install(path, whole.fill(0, at));
    patch(1100 - (1100 % 8), copy);
    loseSector(1);
    assert.equal(open().entries.length, 1);
  });

  it("a mark that covers no more than what comes before a lost sector does not vouch for it", async () => {
    wal.append(state(1, 0), [entry(1)]);
    const synced = wal.sync();
    // Written while that sync runs, which does not cover it.
    wal.append(undefined, [entry(2, 1, 1200)]);
    await synced;
    wal.append(undefined, [entry(3)]);
    await wal.close();
    assert.equal(verifyWal(disk, dir).lastIndex, 3);
    loseSector(1);
    assert.equal(open().entries.length, 1);
  });

  it("what a tear leaves behind is cleared, so that it never stands behind new records", async () => {
    wal.append(state(1, 0), [entry(1)]);
    await wal.sync();
    wal.append(undefined, [entry(2, 1, 1200), entry(3, 1, 100), entry(4, 1, 100)]);
    await wal.close();
    loseSector(1);
    const opened = open();
    opened.wal.append(undefined, [entry(2, 1, 1200)]);
    await opened.wal.close();
    const again = open();
    assert.deepEqual(plain(again.entries), plain([entry(1), entry(2, 1, 1200)]));
    assert.equal(again.droppedTailBytes, 0);
  });

  it("a lost sector that begins with a length word is a tear", async () => {
    wal.append(state(1, 0), [entry(1)]);
    // Fill up to a sector's end, so that a frame starts with a sector.
    for (let index = 2; verifyWal(disk, dir).endOffset % SECTOR_BYTES !== 0; index++) {
      const left = SECTOR_BYTES - (verifyWal(disk, dir).endOffset % SECTOR_BYTES);
      wal.append(undefined, [entry(index, 1, left > 150 ? 60 : Math.max(0, left - 28))]);
      assert.ok(index < 50, "no way to fill a sector");
    }
    const start = verifyWal(disk, dir).endOffset;
    const kept = wal.lastIndex;
    wal.append(undefined, [entry(kept + 1, 1, 900), entry(kept + 2, 1, 30)]);
    await wal.close();
    loseSector(start / SECTOR_BYTES);
    const opened = open();
    assert.equal(opened.entries.length, kept);
    assert.ok(opened.droppedTailBytes > SECTOR_BYTES);
  });

  it("a length word of zero in the middle of a sector is damage", async () => {
    wal.append(state(1, 0), [entry(1)]);
    const start = verifyWal(disk, dir).endOffset;
    wal.append(undefined, [entry(2, 1, 30)]);
    await wal.close();
    patch(start, new Uint8Array(8));
    refused(start, /a length word of zero is followed by other bytes/);
  });

  it("a length word that points too far is damage where the whole record stands behind it", async () => {
    wal.append(state(1, 0), [entry(1)]);
    const start = verifyWal(disk, dir).endOffset;
    wal.append(undefined, [entry(2, 1, 30)]);
    await wal.close();
    for (const [byte, value, reason] of [
      [1, 4, /checksum|decoded/],
      [2, 1, /past the end/],
      [5, 1, /past the end/],
      [7, 0x80, /makes no sense/],
      [7, 0x81, /makes no sense/],
    ] as const) {
      const before = disk.readAll(path);
      patch(start + byte, Uint8Array.of(value));
      refused(start, reason);
      disk.install(path, before);
    }
    assert.equal(open().entries.length, 2);
  });

  it("a file that ends inside a record is torn, down to its padding", async () => {
    wal.append(state(1, 0), [entry(1)]);
    const start = verifyWal(disk, dir).endOffset;
    wal.append(undefined, [entry(2, 1, 31)]);
    const end = verifyWal(disk, dir).endOffset;
    await wal.close();
    const content = disk.readAll(path);
    assert.equal(content[end - 1], 0, "there is padding");
    for (let length = start + 1; length < end; length++) {
      disk.install(path, content.subarray(0, length));
      const opened = open();
      assert.equal(opened.entries.length, 1);
      assert.ok(opened.droppedTailBytes > 0 && opened.droppedTailBytes <= length - start);
      opened.wal.append(undefined, [entry(2, 2, 100)]);
      await opened.wal.close();
      const again = open();
      assert.deepEqual(plain(again.entries), plain([entry(1), entry(2, 2, 100)]));
      await again.wal.close();
    }
  });

  it("bytes that differ without a lost sector are damage, in the last record too", async () => {
    wal.append(state(1, 0), [entry(1)]);
    const start = verifyWal(disk, dir).endOffset;
    wal.append(undefined, [entry(2, 1, 2000)]);
    await wal.close();
    disk.corrupt(path, start + 1000);
    refused(start, /the checksum does not match/);
  });

  it("a missing segment is damage, with the name of the one after it", async () => {
    for (let index = 1; wal.segmentNames.length < 4; index++)
      wal.append(state(1, index - 1), [entry(index, 1, 500)]);
    const names = wal.segmentNames;
    await wal.close();
    disk.remove(`${dir}/${names[2]}`);
    path = `${dir}/${names[3]}`;
    refused(0, /segment 2 is missing before it/);
    assert.deepEqual(
      verifyWal(disk, dir).segments,
      [names[3]],
      "looking from outside starts behind the gap",
    );
  });

  it("a file that becomes shorter while it is read is an error of the disk", async (t) => {
    for (let index = 1; wal.segmentNames.length < 2; index++)
      wal.append(state(1, index - 1), [entry(index, 1, 1000)]);
    await wal.close();
    const content = disk.readAll(path);
    const opening = disk.open.bind(disk);
    t.mock.method(disk, "open", (...args: Parameters<typeof opening>) => {
      const file = opening(...args);
      if (args[0] === path) file.size = () => content.length;
      return file;
    });
    for (const missing of [100, 5000]) {
      disk.install(path, content.subarray(0, content.length - missing));
      throwsDiskError(() => verifyWal(disk, dir), "Io");
    }
  });

  it("whose log it is can be told up to the damage", async () => {
    await wal.close();
    disk.remove(dir);
    const metadata = etcdserverpb.Metadata.encode({ NodeID: 7n, ClusterID: 8n });
    wal = Wal.create(disk, dir, metadata, options(SEGMENT_BYTES));
    wal.append(state(1, 0), [entry(1)]);
    await wal.close();
    disk.corrupt(path, verifyWal(disk, dir).endOffset - 10);
    assert.throws(() => verifyWal(disk, dir), WalDamageError);
    assert.equal(memberOf(disk, dir), 7n);
    disk.corrupt(path, 30);
    assert.equal(memberOf(disk, dir), undefined);
    disk.fault = ({ kind }) => (kind === "read" ? "Io" : undefined);
    throwsDiskError(() => memberOf(disk, dir), "Io");
    disk.fault = undefined;
    disk.remove(dir);
    wal = Wal.create(disk, dir, Uint8Array.of(0xff), options(SEGMENT_BYTES));
    await wal.close();
    assert.equal(memberOf(disk, dir), undefined, "metadata of no member");
  });

  it("a segment whose name was there before its content is damage", async () => {
    await wal.close();
    disk.install(path, new Uint8Array(SEGMENT_BYTES));
    refused(0, /the segment ends before its metadata/);
    disk.install(path, new Uint8Array(0));
    refused(0, /the segment ends before its metadata/);
  });
});
