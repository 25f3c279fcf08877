/** The log while nothing goes wrong, on both kinds of disk. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Disk } from "@quorate/host";
import { ManualClock, rejectsWithDiskError, throwsDiskError } from "@quorate/host/testing";
import type { raftpb } from "@quorate/proto";
import {
  readWal,
  validSnapshotMarks,
  verifyWal,
  Wal,
  WalError,
  type WalErrorCode,
} from "@quorate/wal";
import {
  entries,
  entry,
  mark,
  measured,
  options,
  type Place,
  places,
  plain,
  START,
  state,
} from "./support.ts";

const METADATA = new TextEncoder().encode("member 1");

function throwsWalError(call: () => unknown, code: WalErrorCode): void {
  assert.throws(call, (error) => error instanceof WalError && error.code === code);
}

for (const [name, makePlace] of places) {
  describe(`wal on ${name}`, () => {
    let place: Place;
    let disk: Disk;
    let dir = "";
    const open: Wal[] = [];

    beforeEach(() => {
      place = makePlace();
      disk = place.disk;
      dir = `${place.root}/wal`;
    });
    afterEach(async () => {
      for (const wal of open.splice(0)) await wal.close();
      place.cleanUp();
    });

    const create = (segmentBytes?: number): Wal => {
      const wal = Wal.create(disk, dir, METADATA, options(segmentBytes));
      open.push(wal);
      return wal;
    };
    const reopen = (from = START, segmentBytes?: number) => {
      const opened = Wal.open(disk, dir, from, options(segmentBytes));
      open.push(opened.wal);
      return opened;
    };

    it("returns only the metadata from a new log", async () => {
      await create().close();
      const opened = reopen();
      assert.deepEqual([...opened.metadata], [...METADATA]);
      assert.equal(opened.hardState, undefined);
      assert.deepEqual(opened.entries, []);
      assert.equal(opened.droppedTailBytes, 0);
      assert.deepEqual(disk.list(dir), ["0000000000000000-0000000000000000.wal"]);
      assert.equal(disk.stat(`${dir}/0000000000000000-0000000000000000.wal`)?.sizeBytes, 4096);
    });

    it("drops what conflicts with a snapshot that was received, and keeps what agrees with the log's own", async () => {
      const wal = create(1 << 20);
      wal.append(state(2, 5), entries(1, 20, 2));
      await wal.saveSnapshot(mark(5, 2));
      await wal.saveSnapshot(mark(15, 5));
      wal.append(state(5, 15), []);
      await wal.close();
      assert.deepEqual(
        reopen(mark(15, 5)).entries.map((one) => one.index),
        [],
      );
      await open.pop()!.close();
      assert.deepEqual(
        reopen(mark(5, 2)).entries.map((one) => one.index),
        Array.from({ length: 15 }, (_, i) => i + 6),
      );
    });

    it("returns entries and the last state, over any number of openings", async () => {
      let wal = create(1 << 20);
      for (let round = 0; round < 5; round++) {
        const first = round * 10 + 1;
        wal.append(state(1, first), entries(first, first + 8));
        await wal.sync();
        wal.append(undefined, [entry(first + 9, 1, 0)]);
        wal.append(state(1, first + 3, 0n), []);
        await wal.close();
        const opened = reopen(START, 1 << 20);
        wal = opened.wal;
        assert.equal(opened.entries.length, first + 9);
        assert.deepEqual(
          plain(opened.entries.slice(-10)),
          plain([...entries(first, first + 8), entry(first + 9, 1, 0)]),
        );
        assert.deepEqual(opened.hardState, state(1, first + 3, 0n));
        assert.equal(wal.lastIndex, first + 9);
      }
    });

    it("keeps entries of every type and size", async () => {
      const wal = create(1 << 20);
      const sizes = [0, 1, 511, 512, 513, 8191, 8192, 100_000, 1_500_000];
      const list: raftpb.Entry[] = sizes.map((size, i) => ({
        ...entry(i + 1, 3, size),
        type: size > 0 ? i % 3 : 0,
      }));
      list.push({ ...entry(list.length + 1, 3), type: 1 });
      wal.append(state(3, 0), list);
      await wal.close();
      assert.deepEqual(plain(reopen(START, 1 << 20).entries), plain(list));
    });

    it("replaces entries by later ones with the same index, and drops those behind them", async () => {
      const wal = create();
      wal.append(state(1, 3), entries(1, 10, 1));
      wal.append(state(2, 3), entries(6, 7, 2));
      wal.append(state(4, 4), [entry(5, 4)]);
      await wal.close();
      const { entries: found, wal: again } = reopen();
      assert.deepEqual(plain(found), plain([...entries(1, 4, 1), entry(5, 4)]));
      assert.equal(again.lastIndex, 5);
    });

    it("writes nothing for an empty append", async () => {
      const { measures, writesBytes } = measured();
      const wal = Wal.create(disk, dir, METADATA, { ...options(), measures });
      open.push(wal);
      wal.append(undefined, []);
      wal.append(state(0, 0, 0n), []);
      await wal.sync();
      assert.deepEqual(writesBytes, []);
    });

    it("moves on to new segments, each of which can be read from", async () => {
      const wal = create();
      for (let i = 1; i <= 400; i++) {
        wal.append(state(1 + Math.floor(i / 100), i - 1), [entry(i, 1 + Math.floor(i / 100))]);
        if (i % 7 === 0) await wal.sync();
        if (i % 50 === 0) await wal.saveSnapshot(mark(i - 1, 1 + Math.floor((i - 1) / 100)));
      }
      const names = wal.segmentNames;
      assert.ok(names.length > 5, `${names.length} segments`);
      await wal.close();
      assert.deepEqual(disk.list(dir), names);
      const all = Array.from({ length: 400 }, (_, i) =>
        entry(i + 1, 1 + Math.floor((i + 1) / 100)),
      );
      for (const snapshot of validSnapshotMarks(disk, dir)) {
        const opened = Wal.open(disk, dir, snapshot, options());
        assert.deepEqual(plain(opened.entries), plain(all.slice(snapshot.index)));
        assert.deepEqual(opened.hardState, state(5, 399));
        await opened.wal.close();
      }
      assert.deepEqual(
        validSnapshotMarks(disk, dir).map((snapshot) => snapshot.index),
        [0, 49, 99, 149, 199, 249, 299, 349, 399],
      );
    });

    it("goes on in the last segment after opening, with the checksum rolling on", async () => {
      let wal = create();
      for (let i = 1; i <= 90; i++) {
        wal.append(state(1, i), [entry(i)]);
        await wal.close();
        wal = reopen(i > 60 ? mark(60, 1) : START).wal;
        if (i === 60) await wal.saveSnapshot(mark(60, 1));
      }
      assert.ok(wal.segmentNames.length >= 2);
      await wal.close();
      assert.equal(reopen(mark(60, 1)).entries.length, 30);
    });

    it("prepares a segment when one is half full, and takes it when it is full", async () => {
      const { measures, writesBytes: sizes } = measured();
      const wal = Wal.create(disk, dir, METADATA, { ...options(), measures });
      open.push(wal);
      wal.append(state(1, 0), [entry(1, 1, 500)]);
      wal.append(undefined, [entry(2, 1, 500)]);
      // Frames have a multiple of 8 bytes, and so has what is left.
      const left = 2048 - verifyWal(disk, dir).endOffset;
      wal.append(undefined, [entry(3, 1, 500 + left - sizes[1])]);
      assert.deepEqual(disk.list(dir), ["0.tmp", ...wal.segmentNames]);
      wal.append(undefined, [entry(4, 1, 500 + 2048 - sizes[1])]);
      assert.equal(wal.segmentNames.length, 2);
      assert.equal(disk.stat(`${dir}/${wal.segmentNames[0]}`)?.sizeBytes, 4096);
      assert.equal(sizes.length, 5, "the head of the next segment is written too");
    });

    it("takes a mark only with its configuration, but for that of the beginning", async () => {
      const wal = create();
      await wal.saveSnapshot(START);
      await assert.rejects(wal.saveSnapshot({ ...mark(1, 1), confState: undefined }), /WAL-3/);
    });

    it("puts all of a batch, however large, into one segment", async () => {
      const wal = create();
      wal.append(state(1, 0), entries(1, 500));
      wal.append(state(1, 500), [entry(501)]);
      await wal.close();
      assert.deepEqual(
        disk.list(dir).map((file) => disk.stat(`${dir}/${file}`)!.sizeBytes > 20_000),
        [true, false],
      );
      assert.equal(reopen().entries.length, 501);
    });

    it("releases segments that a snapshot covers, and keeps as many as requested", async () => {
      const wal = create();
      for (let i = 1; i <= 500; i++) wal.append(state(1, i), [entry(i)]);
      await wal.saveSnapshot(mark(300, 1));
      const before = wal.segmentNames;
      assert.deepEqual(wal.release(10), []);
      assert.deepEqual(wal.release(300, before.length), []);
      assert.deepEqual(wal.release(300, before.length - 1), before.slice(0, 1));
      const released = wal.release(300);
      assert.ok(released.length > 1);
      assert.deepEqual([before[0], ...released, ...wal.segmentNames], before);
      assert.deepEqual(
        disk.list(dir).filter((file) => file.endsWith(".wal")),
        wal.segmentNames,
      );
      assert.deepEqual(wal.release(300), []);
      throwsDiskError(() => Wal.open(disk, dir, mark(300, 1), options()), "Locked");
      await wal.close();
      const again = reopen(mark(300, 1));
      assert.deepEqual(plain(again.entries), plain(entries(301, 500)));
      await again.wal.close();
      throwsWalError(() => Wal.open(disk, dir, START, options()), "NotFound");
    });

    it("always keeps the segment that it writes to", async () => {
      const wal = create();
      wal.append(state(1, 1), [entry(1)]);
      assert.deepEqual(wal.release(1_000_000), []);
      assert.deepEqual(wal.release(1_000_000, 0), []);
    });

    it("takes a snapshot from a leader in place of entries it never had", async () => {
      const wal = create();
      wal.append(state(1, 2), entries(1, 5));
      await wal.saveSnapshot(mark(100, 3));
      wal.append(state(3, 100), []);
      assert.equal(wal.lastIndex, 100);
      wal.append(state(3, 101), entries(101, 103, 3));
      await wal.close();
      assert.deepEqual(
        validSnapshotMarks(disk, dir).map(({ index, term }) => [index, term]),
        [
          [0, 0],
          [100, 3],
        ],
      );
      throwsWalError(() => Wal.open(disk, dir, START, options()), "NotFound");
      assert.deepEqual(plain(reopen(mark(100, 3)).entries), plain(entries(101, 103, 3)));
    });

    it("does not call a snapshot valid that is ahead of the commit index", async () => {
      const wal = create();
      wal.append(state(1, 2), entries(1, 5));
      await wal.saveSnapshot(mark(3, 1));
      await wal.close();
      assert.deepEqual(
        validSnapshotMarks(disk, dir).map((snapshot) => snapshot.index),
        [0],
      );
    });

    it("starts only from a snapshot that it has a mark of", async () => {
      const wal = create();
      wal.append(state(2, 4), entries(1, 5, 2));
      await wal.saveSnapshot(mark(3, 2));
      await wal.close();
      throwsWalError(() => Wal.open(disk, dir, mark(2, 2), options()), "SnapshotNotFound");
      throwsWalError(() => Wal.open(disk, dir, mark(3, 1), options()), "SnapshotMismatch");
      assert.equal(reopen(mark(3, 2)).entries.length, 2);
    });

    it("refuses to make a log where one is, or to open one where none is", async () => {
      throwsWalError(() => Wal.open(disk, dir, START, options()), "NotFound");
      assert.deepEqual(disk.list(place.root), [], "the refusal leaves nothing behind");
      assert.equal(Wal.exists(disk, dir), false);
      disk.makeDir(dir);
      assert.equal(Wal.exists(disk, dir), false);
      await create().close();
      assert.equal(Wal.exists(disk, dir), true);
      throwsWalError(() => Wal.create(disk, dir, METADATA, options()), "Exists");
      assert.equal(reopen().entries.length, 0);
    });

    it("does not touch a directory with other files, but clears away what an unfinished creation left", async () => {
      disk.makeDir(dir);
      disk.replace(`${dir}/precious`, METADATA);
      throwsWalError(() => Wal.create(disk, dir, METADATA, options()), "Exists");
      disk.remove(dir);
      disk.makeDir(`${dir}.tmp/x`);
      await create().close();
      assert.deepEqual(disk.list(place.root), ["wal", "wal.lock"]);
    });

    it("removes what an unfinished preparation left, and leaves other files alone", async () => {
      await create().close();
      disk.replace(`${dir}/7.tmp`, METADATA);
      disk.replace(`${dir}/notes.txt`, METADATA);
      reopen();
      assert.deepEqual(disk.list(dir), ["0000000000000000-0000000000000000.wal", "notes.txt"]);
    });

    it("is open once at a time", async () => {
      const wal = create();
      throwsDiskError(() => Wal.open(disk, dir, START, options()), "Locked");
      throwsDiskError(() => Wal.create(disk, dir, METADATA, options()), "Locked");
      await wal.close();
      const again = reopen();
      await again.wal.close();
      await again.wal.close();
      reopen();
    });

    it("releases the lock when opening fails", async () => {
      await create().close();
      throwsWalError(() => Wal.open(disk, dir, mark(5, 1), options()), "SnapshotNotFound");
      reopen();
    });

    it("refuses every use after close", async () => {
      const wal = create();
      wal.append(state(1, 0), [entry(1)]);
      const closing = wal.close();
      throwsWalError(() => wal.append(undefined, [entry(2)]), "Closed");
      await closing;
      throwsWalError(() => wal.append(undefined, [entry(2)]), "Closed");
      throwsWalError(() => void wal.sync(), "Closed");
      throwsWalError(() => wal.syncNow(), "Closed");
      throwsWalError(() => wal.release(1), "Closed");
      await assert.rejects(wal.saveSnapshot(mark(1, 1)), WalError);
      assert.equal(reopen().entries.length, 1);
    });

    it("reads the same through readWal, with places that lead to the bytes", async () => {
      const wal = create();
      for (let i = 1; i <= 100; i++) {
        wal.append(state(1, i - 1), [entry(i)]);
        await wal.sync();
      }
      await wal.close();
      let seen = 0;
      for (const record of readWal(disk, dir)) {
        const bytes = disk.readAll(`${dir}/${record.segment.name}`);
        assert.equal(bytes[record.offset + 9], record.type);
        if (record.type === 2) seen++;
      }
      assert.equal(seen, 100);
      const summary = verifyWal(disk, dir);
      assert.equal(summary.lastIndex, 100);
      assert.equal(summary.tornBytes, 0);
      assert.deepEqual(summary.segments, disk.list(dir));
    });

    it("syncs once for all that wait, and at once where nothing is new", async () => {
      const { measures, syncsMs: syncs } = measured();
      const wal = Wal.create(disk, dir, METADATA, { ...options(1 << 20), measures });
      open.push(wal);
      await wal.sync();
      assert.equal(syncs.length, 0);
      wal.append(state(1, 0), [entry(1)]);
      const first = wal.sync();
      assert.equal(wal.sync(), first, "nothing was appended since");
      wal.append(undefined, [entry(2)]);
      const second = wal.sync();
      wal.append(undefined, [entry(3)]);
      const third = wal.sync();
      assert.notEqual(second, first);
      assert.equal(third, second);
      const order: string[] = [];
      await Promise.all([
        first.then(() => order.push("first")),
        second.then(() => order.push("second")),
      ]);
      assert.deepEqual(order, ["first", "second"]);
      assert.equal(syncs.length, 2);
      await wal.sync();
      assert.equal(syncs.length, 2);
    });

    it("syncs by a blocking call, if no other sync is under way", async () => {
      const { measures, syncsMs: syncs } = measured();
      const wal = Wal.create(disk, dir, METADATA, { ...options(1 << 20), measures });
      open.push(wal);
      assert.equal(wal.lastSyncMs, Number.POSITIVE_INFINITY);
      wal.append(state(1, 0), [entry(1)]);
      wal.syncNow();
      wal.syncNow();
      assert.equal(syncs.length, 1);
      assert.deepEqual([wal.isSyncing, Number.isFinite(wal.lastSyncMs)], [false, true]);
      await wal.sync();
      assert.equal(syncs.length, 1, "nothing is left to sync");
      wal.append(undefined, [entry(2)]);
      const under = wal.sync();
      assert.equal(wal.isSyncing, true);
      assert.throws(() => wal.syncNow(), /WAL-2/);
      await under;
      assert.equal(wal.isSyncing, false);
    });

    it("keeps its promises over a change of segment in the middle of a sync", async () => {
      const wal = create();
      wal.append(state(1, 0), entries(1, 3));
      const first = wal.sync();
      wal.append(undefined, entries(4, 200));
      assert.equal(wal.segmentNames.length, 2);
      const second = wal.sync();
      wal.append(undefined, entries(201, 210));
      const third = wal.sync();
      await Promise.all([first, second, third]);
      await wal.close();
      assert.equal(reopen().entries.length, 210);
    });

    it("writes a batch with one call, and reports its size and how long it took", async () => {
      const { measures, writesMs, writesBytes: sizes } = measured();
      const clock = new ManualClock();
      clock.advance(1000);
      const wal = Wal.create(disk, dir, METADATA, { ...options(1 << 20), clock, measures });
      open.push(wal);
      const before = verifyWal(disk, dir).endOffset;
      wal.append(state(1, 0), [...entries(1, 100), entry(101, 1, 20_000), entry(102)]);
      assert.deepEqual([sizes.length, writesMs], [1, [0]]);
      assert.equal(verifyWal(disk, dir).endOffset - before, sizes[0]);
    });

    it("prepares the next segment while the present one fills, and removes it at close", async () => {
      const wal = create(64 << 10);
      let i = 0;
      while (wal.segmentNames.length === 1) {
        wal.append(state(1, i), [entry(++i, 1, 1000)]);
        await wal.sync();
      }
      const second = `${dir}/${wal.segmentNames[1]}`;
      assert.equal(disk.stat(second)?.sizeBytes, 64 << 10, "taken with all its zeros");
      assert.deepEqual(disk.list(dir), wal.segmentNames);
      while (verifyWal(disk, dir).endOffset * 2 < 64 << 10) {
        assert.deepEqual(disk.list(dir), wal.segmentNames, "not before it is half full");
        wal.append(state(1, i), [entry(++i, 1, 1000)]);
      }
      wal.append(state(1, i), [entry(++i, 1, 1000)]);
      await wal.sync();
      assert.deepEqual(disk.list(dir), [...wal.segmentNames, "1.tmp"]);
      await wal.close();
      assert.deepEqual(disk.list(dir), wal.segmentNames);
      assert.equal(reopen(START, 64 << 10).entries.length, i);
    });

    it("releases what a segment of a larger size had reserved", async () => {
      await create(64 << 10).close();
      const { wal } = reopen(START, 4096);
      wal.append(state(1, 0), entries(1, 100, 1, 30));
      const [first] = wal.segmentNames;
      assert.equal(wal.segmentNames.length, 2);
      await wal.close();
      assert.ok(disk.stat(`${dir}/${first}`)!.sizeBytes < 10_000);
      assert.equal(reopen().entries.length, 100);
    });

    it("does not wait for a preparation that is not ready", async () => {
      const wal = create(64 << 10);
      for (let i = 1; i <= 300; i++) wal.append(state(1, i - 1), [entry(i, 1, 1000)]);
      assert.ok(wal.segmentNames.length > 3);
      await wal.close();
      assert.deepEqual(disk.list(dir), wal.segmentNames);
      assert.equal(reopen(START, 64 << 10).entries.length, 300);
    });

    it("holds what an append must not break, and is closed after a breach", async () => {
      const breaches: [
        what: RegExp,
        hardState: raftpb.HardState | undefined,
        list: raftpb.Entry[],
      ][] = [
        [/entry 7 follows entry 5/, undefined, [entry(7, 2)]],
        [/would replace a committed one/, undefined, [entry(3, 2)]],
        [/entry 6 has term 1, the one before has 2/, undefined, [entry(6, 1)]],
        [/an entry has index 6 and term 0/, undefined, [entry(6, 0)]],
        [/unknown type 3/, undefined, [{ ...entry(6, 2), type: 3 }]],
        [/changes the configuration to nothing/, undefined, [{ ...entry(6, 2, 0), type: 1 }]],
        [/the term goes back from 2 to 1/, state(1, 3), []],
        [/the commit index goes back from 3 to 2/, state(2, 2), []],
        [/the commit index is 6, the last entry 5/, state(2, 6), []],
        [/a state has term 0/, state(0, 3), []],
        [/a state has term 0/, state(0, 0), []],
        [/a state has term 0/, state(0, 3, 0n), []],
      ];
      for (const [what, hardState, list] of breaches) {
        const wal = Wal.create(disk, dir, METADATA, options());
        wal.append(state(2, 3), entries(1, 5, 2));
        await wal.sync();
        assert.throws(() => wal.append(hardState, list), what);
        throwsWalError(() => wal.append(undefined, [entry(6, 2)]), "Closed");
        await wal.close();
        assert.equal(verifyWal(disk, dir).lastIndex, 5);
        disk.remove(dir);
      }
    });

    it("is a log of one member only: other metadata in a segment is refused", async () => {
      const wal = create();
      for (let i = 1; i <= 100; i++) wal.append(state(1, i - 1), [entry(i)]);
      await wal.close();
      const [first, second] = disk.list(dir);
      disk.rename(`${dir}/${first}`, `${place.root}/${first}`);
      disk.remove(dir);
      const other = Wal.create(disk, dir, new TextEncoder().encode("member 2"), options());
      for (let i = 1; i <= 100; i++) other.append(state(1, i - 1), [entry(i)]);
      await other.close();
      disk.rename(`${place.root}/${first}`, `${dir}/${first}`);
      assert.throws(() => Wal.open(disk, dir, START, options()), {
        code: "Damaged",
        path: `${dir}/${second}`,
        offset: 0,
      });
    });

    it("refuses a segment size that is no multiple of 8", () => {
      for (const segmentBytes of [0, -8, 1001, Number.NaN]) {
        assert.throws(() => Wal.create(disk, dir, METADATA, options(segmentBytes)), /a segment of/);
        assert.throws(() => Wal.open(disk, dir, START, options(segmentBytes)), /a segment of/);
      }
    });

    it("rejects a failed creation and leaves no log", async () => {
      await rejectsWithDiskError(
        (async () => {
          Wal.create(disk, `${place.root}/none/wal`, METADATA, options());
        })(),
        "NotFound",
      );
      assert.equal(Wal.exists(disk, `${place.root}/none/wal`), false);
    });
  });
}
