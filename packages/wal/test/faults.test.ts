/**
 * Errors of the disk: nothing is tried again after one, and nothing that was acknowledged is lost.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type DiskFile, SeededRandom } from "@quorate/host";
import {
  ManualClock,
  type MemoryDisk,
  rejectsWithDiskError,
  throwsDiskError,
} from "@quorate/host/testing";
import { readWal, verifyWal, Wal, WalError } from "@quorate/wal";
import {
  entries,
  entry,
  mark,
  measured,
  memoryPlace,
  options,
  plain,
  START,
  state,
} from "./support.ts";

const METADATA = new Uint8Array([1]);

function newLog(segmentBytes?: number): { disk: MemoryDisk; dir: string; wal: Wal } {
  const { disk, root } = memoryPlace();
  const dir = `${root}/wal`;
  return { disk, dir, wal: Wal.create(disk, dir, METADATA, options(segmentBytes)) };
}

/** Every use of the log is refused, with the first error as the cause. */
async function assertEnded(wal: Wal, cause: RegExp): Promise<void> {
  const ended = (error: unknown) =>
    error instanceof WalError && error.code === "Closed" && cause.test(error.message);
  assert.throws(() => wal.append(undefined, [entry(99)]), ended);
  assert.throws(() => void wal.sync(), ended);
  assert.throws(() => wal.release(1), ended);
  await assert.rejects(wal.saveSnapshot(mark(1, 1)), ended);
}

describe("an error of the disk", () => {
  it("in a sync reaches all who wait for it or the next, and ends the log", async () => {
    const { disk, dir, wal } = newLog();
    wal.append(state(1, 0), [entry(1)]);
    await wal.sync();
    wal.append(undefined, [entry(2)]);
    const first = wal.sync();
    wal.append(undefined, [entry(3)]);
    const second = wal.sync();
    disk.fault = ({ kind }) => (kind === "sync" ? "Io" : undefined);
    await Promise.all([rejectsWithDiskError(first, "Io"), rejectsWithDiskError(second, "Io")]);
    disk.fault = undefined;
    await assertEnded(wal, /injected at sync/);
    await wal.close();
    disk.crash(new SeededRandom(1n));
    assert.ok(Wal.open(disk, dir, START, options()).entries.length >= 1);
  });

  it("in a sync is not forgotten over a restart of the process: what was read is written down again", async () => {
    for (let seed = 1n; seed <= 30n; seed++) {
      const { disk, dir, wal } = newLog();
      wal.append(state(1, 0), [entry(1)]);
      await wal.sync();
      wal.append(undefined, [entry(2, 1, 1000)]);
      disk.fault = ({ kind }) => (kind === "sync" ? "Io" : undefined);
      await rejectsWithDiskError(wal.sync(), "Io");
      disk.fault = undefined;
      disk.kill(new SeededRandom(seed));
      const opened = Wal.open(disk, dir, START, options());
      const count = opened.entries.length;
      assert.equal(count, 2, "the system still has it in memory");
      disk.crash(new SeededRandom(seed));
      assert.equal(Wal.open(disk, dir, START, options()).entries.length, 2);
    }
  });

  it("in a write ends the log, and what was synced before is there", async () => {
    for (const code of ["NoSpace", "Io"] as const) {
      const { disk, dir, wal } = newLog(1 << 16);
      wal.append(state(1, 0), entries(1, 10));
      await wal.sync();
      disk.fault = ({ kind }) => (kind === "write" ? code : undefined);
      throwsDiskError(() => wal.append(undefined, entries(11, 30, 1, 200)), code);
      disk.fault = undefined;
      await assertEnded(wal, /injected at write/);
      await wal.close();
      const opened = Wal.open(disk, dir, START, options(1 << 16));
      assert.ok(opened.entries.length >= 10 && opened.entries.length < 30);
      assert.deepEqual(
        plain(opened.entries),
        plain(entries(1, opened.entries.length))
          .slice(0, 10)
          .concat(plain(entries(11, 30, 1, 200)))
          .slice(0, opened.entries.length),
      );
    }
  });

  it("in any step of a change of segment loses nothing that was synced", async () => {
    let steps = 0;
    for (let failing = 0; ; failing++) {
      const { disk, dir, wal } = newLog();
      wal.append(state(1, 0), entries(1, 5));
      await wal.sync();
      let count = 0;
      disk.fault = ({ kind }) => (kind !== "list" && count++ === failing ? "Io" : undefined);
      let failed = false;
      try {
        wal.append(undefined, entries(6, 200));
        wal.append(undefined, [entry(201)]);
      } catch {
        failed = true;
      }
      disk.fault = undefined;
      await wal.close();
      for (let seed = 1n; seed <= 5n; seed++) disk.crash(new SeededRandom(seed));
      const { entries: found } = Wal.open(disk, dir, START, options());
      assert.ok(found.length >= 5);
      assert.deepEqual(plain(found), plain(entries(1, 201)).slice(0, found.length));
      if (!failed) break;
      steps++;
    }
    assert.ok(steps >= 8, `${steps} steps can fail`);
  });

  it("and a kill between the new segment's name and its sync lose nothing either", async () => {
    for (let seed = 1n; seed <= 30n; seed++) {
      const { disk, dir, wal } = newLog();
      wal.append(state(1, 0), entries(1, 5));
      await wal.sync();
      disk.fault = ({ kind }) => (kind === "syncDir" ? "Io" : undefined);
      throwsDiskError(() => wal.append(undefined, entries(6, 200)), "Io");
      disk.fault = undefined;
      disk.kill(new SeededRandom(seed));
      const opened = Wal.open(disk, dir, START, options());
      assert.equal(opened.wal.segmentNames.length, 2);
      opened.wal.append(undefined, [entry(201)]);
      await opened.wal.sync();
      disk.crash(new SeededRandom(seed));
      assert.equal(Wal.open(disk, dir, START, options()).entries.length, 201);
    }
  });

  it("leaves no file open, nor does a change of segment", async (t) => {
    const { disk, wal } = newLog();
    const open = new Set<DiskFile>();
    const opening = disk.open.bind(disk);
    t.mock.method(disk, "open", (...args: Parameters<typeof opening>) => {
      const file = opening(...args);
      const close = file.close.bind(file);
      open.add(file);
      file.close = () => {
        open.delete(file);
        close();
      };
      return file;
    });
    wal.append(state(1, 0), entries(1, 200));
    assert.equal(open.size, 1, "the new segment");
    wal.append(undefined, entries(201, 400));
    assert.equal(open.size, 1, "no sync was under way");
    wal.append(undefined, [entry(401)]);
    const running = wal.sync();
    wal.append(undefined, entries(402, 600));
    assert.equal(open.size, 2, "the old one is still being synced");
    await Promise.all([running, wal.sync()]);
    assert.equal(open.size, 1);
    wal.append(undefined, [entry(601)]);
    const failing = wal.sync();
    wal.append(undefined, entries(602, 800));
    assert.equal(open.size, 2);
    disk.fault = ({ kind }) => (kind === "sync" ? "Io" : undefined);
    await rejectsWithDiskError(failing, "Io");
    disk.fault = undefined;
    assert.equal(open.size, 1);
    await wal.close();
    assert.equal(open.size, 0);
  });

  it("in the preparation of a segment is met again only when the segment is needed", async () => {
    const { disk, dir, wal } = newLog(64 << 10);
    let attempts = 0;
    disk.fault = ({ kind, path }) => {
      if (!path.endsWith(".tmp") || kind === "remove") return undefined;
      attempts++;
      return "NoSpace";
    };
    let index = 0;
    while (verifyWal(disk, dir).endOffset < 60 << 10) {
      wal.append(state(1, index), [entry(++index, 1, 1000)]);
      await wal.sync();
    }
    assert.equal(attempts, 1);
    throwsDiskError(
      () => wal.append(undefined, entries(index + 1, index + 20, 1, 1000)),
      "NoSpace",
    );
    disk.fault = undefined;
    await wal.close();
    assert.equal(Wal.open(disk, dir, START, options(64 << 10)).entries.length, index + 20);
  });

  it("at opening is thrown unchanged, and the lock is released", async () => {
    const { disk, dir, wal } = newLog();
    wal.append(state(1, 0), [entry(1)]);
    await wal.close();
    for (const kind of ["read", "write", "sync", "syncDir", "list", "open"] as const) {
      disk.fault = (operation) => (operation.kind === kind ? "Io" : undefined);
      throwsDiskError(() => Wal.open(disk, dir, START, options()), "Io");
      disk.fault = undefined;
    }
    assert.equal(Wal.open(disk, dir, START, options()).entries.length, 1);
  });

  it("a full disk refuses a log at its creation, without leaving one", () => {
    const { disk, root } = memoryPlace({ capacityBytes: 2000 });
    throwsDiskError(() => Wal.create(disk, `${root}/wal`, METADATA, options()), "NoSpace");
    assert.equal(Wal.exists(disk, `${root}/wal`), false);
    disk.capacityBytes = 100_000;
    Wal.create(disk, `${root}/wal`, METADATA, options());
  });
});

describe("durability", () => {
  it("is what a sync waits for: not less, on a slow disk", async () => {
    const clock = new ManualClock();
    const { disk, root } = memoryPlace({ clock, syncDelayMs: () => 10 });
    const { measures, syncsMs } = measured();
    const wal = Wal.create(disk, `${root}/wal`, METADATA, {
      ...options(1 << 16),
      clock,
      measures,
    });
    const done: string[] = [];
    wal.append(state(1, 0), [entry(1)]);
    void wal.sync().then(() => done.push("a"));
    await clock.advanceAsync(5);
    wal.append(undefined, [entry(2)]);
    void wal.sync().then(() => done.push("b"));
    await clock.advanceAsync(4);
    assert.equal(done.join(), "");
    await clock.advanceAsync(1);
    assert.equal(done.join(), "a");
    wal.append(undefined, [entry(3)]);
    void wal.sync().then(() => done.push("c"));
    await clock.advanceAsync(10);
    assert.equal(done.join(), "a,b");
    await clock.advanceAsync(10);
    assert.equal(done.join(), "a,b,c");
    assert.deepEqual(syncsMs, [10, 10, 10]);
  });

  it("is proven to later readers by marks, in every segment", async () => {
    const { disk, dir, wal } = newLog();
    for (let index = 1; wal.segmentNames.length < 3; index++) {
      wal.append(state(1, index - 1), [entry(index, 1, 200)]);
      await wal.sync();
    }
    wal.append(undefined, [entry(wal.lastIndex + 1)]);
    await wal.sync();
    wal.append(undefined, [entry(wal.lastIndex + 1)]);
    await wal.close();
    const marked = new Map<string, number>();
    for (const { segment, type, data } of readWal(disk, dir)) {
      if (type === 4 && data.length > 0)
        marked.set(segment.name, (marked.get(segment.name) ?? 0) + 1);
    }
    const counts = verifyWal(disk, dir).segments.map((name) => marked.get(name) ?? 0);
    assert.ok(counts[0] > 10 && counts[1] > 10, String(counts));
    assert.equal(counts[2], 1);
  });
});
