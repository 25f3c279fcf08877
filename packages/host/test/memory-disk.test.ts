/** Crashes, kills and injected faults of a MemoryDisk. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type DiskErrorCode, SeededRandom } from "@quorate/host";
import {
  ManualClock,
  MemoryDisk,
  rejectsWithDiskError,
  SECTOR_BYTES,
  throwsDiskError,
} from "@quorate/host/testing";

/** Runs `body` with many seeds. */
function seeds(count: number, body: (random: SeededRandom) => void): void {
  for (let seed = 1; seed <= count; seed++) body(new SeededRandom(BigInt(seed)));
}

/** A disk with a durable directory /d and a durable file /d/f of `size` ones. */
function diskWithFile(size: number): MemoryDisk {
  const disk = new MemoryDisk();
  disk.install("/d/f", new Uint8Array(size).fill(1));
  return disk;
}

describe("a crash", () => {
  it("keeps synced bytes", () => {
    seeds(50, (random) => {
      const disk = diskWithFile(3000);
      const file = disk.open("/d/f", "write");
      file.write([new Uint8Array(1000).fill(2)], 500);
      file.write([new Uint8Array(1000).fill(3)], 2800);
      file.dataSyncNow();
      disk.crash(random);
      const content = disk.readAll("/d/f");
      assert.equal(content.length, 3800);
      assert.deepEqual(
        [content[499], content[500], content[1499], content[1500], content[2799], content[2800]],
        [1, 2, 2, 1, 1, 3],
      );
    });
  });

  it("keeps or loses each unsynced sector independently, never a part of one", () => {
    let kept = 0;
    let lost = 0;
    seeds(40, (random) => {
      const disk = diskWithFile(16 * SECTOR_BYTES);
      disk.open("/d/f", "write").write([new Uint8Array(16 * SECTOR_BYTES).fill(2)], 0);
      disk.crash(random);
      const content = disk.readAll("/d/f");
      for (let at = 0; at < content.length; at += SECTOR_BYTES) {
        const sector = content.subarray(at, at + SECTOR_BYTES);
        assert.ok(sector.every((byte) => byte === sector[0]));
        if (sector[0] === 2) kept++;
        else lost++;
      }
    });
    assert.ok(kept > 200 && lost > 200, `${kept} kept, ${lost} lost`);
  });

  it("during a write leaves nothing of that write after the crash point", () => {
    seeds(20, (random) => {
      const disk = diskWithFile(2 * SECTOR_BYTES);
      const file = disk.open("/d/f", "write");
      disk.fault = () => {
        disk.crash(random);
        return "Io";
      };
      throwsDiskError(() => file.write([new Uint8Array(2 * SECTOR_BYTES).fill(2)], 0), "Io");
      disk.fault = undefined;
      assert.ok(disk.readAll("/d/f").every((byte) => byte === 1));
    });
  });

  it("leaves a file that grew with any size from the old to the new one", () => {
    const sizes = new Set<number>();
    seeds(60, (random) => {
      const disk = diskWithFile(100);
      disk.open("/d/f", "write").write([new Uint8Array(1000).fill(2)], 100);
      disk.crash(random);
      const content = disk.readAll("/d/f");
      sizes.add(content.length);
      assert.ok(content.subarray(0, 100).every((byte) => byte === 1));
    });
    assert.ok(sizes.has(100) && sizes.has(1100) && sizes.size > 5);
  });

  it("may restore what an unsynced truncate cut off", () => {
    const sizes = new Set<number>();
    seeds(60, (random) => {
      const disk = diskWithFile(2000);
      disk.open("/d/f", "write").truncate(100);
      disk.crash(random);
      sizes.add(disk.readAll("/d/f").length);
    });
    assert.ok(sizes.has(100) && sizes.has(2000));
  });

  it("ignores a pending sync; a finished one covers the writes before its start", async () => {
    for (let seed = 1n; seed <= 30n; seed++) {
      const clock = new ManualClock();
      const disk = new MemoryDisk({ clock, syncDelayMs: () => 10 });
      disk.install("/d/f", new Uint8Array(4 * SECTOR_BYTES));
      const file = disk.open("/d/f", "write");
      file.write([new Uint8Array(SECTOR_BYTES).fill(1)], 0);
      const first = file.dataSync();
      file.write([new Uint8Array(SECTOR_BYTES).fill(2)], 0);
      file.write([new Uint8Array(SECTOR_BYTES).fill(2)], SECTOR_BYTES);
      await clock.advanceAsync(10);
      await first;
      let ended = false;
      void file.dataSync().then(() => {
        ended = true;
      });
      await clock.advanceAsync(9);
      disk.crash(new SeededRandom(seed));
      await clock.advanceAsync(100);
      assert.ok(!ended, "a sync of a dead process never ends");
      const content = disk.readAll("/d/f");
      assert.ok(content[0] === 1 || content[0] === 2, "the synced bytes or the later ones");
      assert.ok(content[SECTOR_BYTES] === 0 || content[SECTOR_BYTES] === 2);
    }
  });

  it("reverts name changes from the latest back, unless their directory was synced", () => {
    const outcomes = new Set<string>();
    seeds(60, (random) => {
      const disk = diskWithFile(1);
      disk.open("/d/a", "create").close();
      disk.rename("/d/a", "/d/b");
      disk.remove("/d/f");
      disk.crash(random);
      outcomes.add(disk.list("/d").join());
    });
    assert.deepEqual([...outcomes].sort(), ["a,f", "b", "b,f", "f"]);
    seeds(20, (random) => {
      const disk = diskWithFile(1);
      disk.rename("/d/f", "/d/g");
      disk.syncDir("/d");
      disk.crash(random);
      assert.deepEqual(disk.list("/d"), ["g"]);
    });
  });

  it("loses a directory whose name is not durable, with all that was synced in it", () => {
    const outcomes = new Set<string>();
    seeds(20, (random) => {
      const disk = new MemoryDisk();
      disk.makeDir("/new");
      const file = disk.open("/new/f", "create");
      file.write([new Uint8Array(1)], 0);
      file.dataSyncNow();
      disk.syncDir("/new");
      disk.crash(random);
      outcomes.add(disk.stat("/new/f") ? "all" : disk.stat("/new") ? "directory" : "none");
    });
    assert.deepEqual([...outcomes].sort(), ["all", "none"]);
  });

  it("replaces a file atomically", () => {
    const outcomes = new Set<number>();
    seeds(40, (random) => {
      const disk = diskWithFile(2000);
      let steps = random.below(12);
      disk.fault = () => {
        if (steps-- === 0) throw new Error("crash");
        return undefined;
      };
      try {
        disk.replace("/d/f", new Uint8Array(3000).fill(2));
      } catch (error) {
        assert.equal((error as Error).message, "crash");
      }
      disk.fault = undefined;
      disk.crash(random);
      const content = disk.readAll("/d/f");
      assert.ok(
        content.every((byte) => byte === content[0]) &&
          content.length === (content[0] === 1 ? 2000 : 3000),
      );
      outcomes.add(content[0]);
    });
    assert.equal(outcomes.size, 2);
  });

  it("ends open files and locks; a kill does too but keeps all bytes", () => {
    for (const way of ["crash", "kill"] as const) {
      const disk = diskWithFile(10);
      const file = disk.open("/d/f", "write");
      const lock = disk.lock("/d/lock");
      file.write([new Uint8Array(5).fill(7)], 0);
      disk[way](new SeededRandom(1n));
      throwsDiskError(() => file.size(), "Io");
      throwsDiskError(() => file.write([new Uint8Array(1)], 0), "Io");
      disk.lock("/d/lock");
      lock.release();
      throwsDiskError(() => disk.lock("/d/lock"), "Locked");
      if (way === "kill") assert.equal(disk.readAll("/d/f")[4], 7);
    }
  });
});

describe("faults", () => {
  it("reach every kind of operation, with its path", async () => {
    const disk = diskWithFile(2000);
    const file = disk.open("/d/f", "write");
    const fail = (kind: string, code: DiskErrorCode) => {
      disk.fault = (operation) =>
        operation.kind === kind && operation.path.startsWith("/d") ? code : undefined;
    };
    fail("read", "Io");
    throwsDiskError(() => file.read(new Uint8Array(1), 0), "Io");
    throwsDiskError(() => disk.readAll("/d/f"), "Io");
    fail("write", "NoSpace");
    throwsDiskError(() => file.write([new Uint8Array(3000).fill(9)], 0), "NoSpace");
    await rejectsWithDiskError(file.writeZeros(0, 1), "NoSpace");
    fail("sync", "Io");
    throwsDiskError(() => file.dataSyncNow(), "Io");
    await rejectsWithDiskError(file.dataSync(), "Io");
    fail("resize", "Io");
    throwsDiskError(() => file.truncate(1), "Io");
    throwsDiskError(() => file.preallocate(100), "Io");
    const calls: [string, () => unknown][] = [
      ["open", () => disk.open("/d/f", "read")],
      ["rename", () => disk.rename("/d/f", "/d/g")],
      ["remove", () => disk.remove("/d/f")],
      ["list", () => disk.list("/d")],
      ["makeDir", () => disk.makeDir("/d/e")],
      ["syncDir", () => disk.syncDir("/d")],
    ];
    for (const [kind, call] of calls) {
      fail(kind, "Io");
      throwsDiskError(call, "Io");
    }
    disk.fault = undefined;
    const content = disk.readAll("/d/f");
    assert.deepEqual(
      [content.length, content[1023], content[1024]],
      [2000, 9, 1],
      "the failed write left its first half, to the end of a sector",
    );
  });

  it("make a failed sync lose what it covered, unless that is written again", () => {
    seeds(20, (random) => {
      const disk = diskWithFile(4 * SECTOR_BYTES);
      const file = disk.open("/d/f", "write");
      file.write([new Uint8Array(2 * SECTOR_BYTES).fill(2)], 0);
      disk.fault = () => "Io";
      throwsDiskError(() => file.dataSyncNow(), "Io");
      disk.fault = undefined;
      file.write([new Uint8Array(SECTOR_BYTES).fill(3)], 0);
      file.dataSyncNow();
      assert.equal(disk.readAll("/d/f")[SECTOR_BYTES], 2, "the process still reads it");
      disk.crash(random);
      const content = disk.readAll("/d/f");
      assert.deepEqual([content[0], content[SECTOR_BYTES]], [3, 1]);
    });
  });

  it("include a full disk: the write is cut at the end of the space", () => {
    const disk = new MemoryDisk({ capacityBytes: 1024 });
    disk.makeDir("/d");
    const file = disk.open("/d/f", "create");
    file.write([new Uint8Array(600).fill(1)], 0);
    assert.equal(disk.freeBytes("/d"), 424);
    throwsDiskError(
      () => file.write([new Uint8Array(300).fill(2), new Uint8Array(300).fill(3)], 600),
      "NoSpace",
    );
    assert.equal(disk.readAll("/d/f").length, 1024);
    assert.equal(disk.freeBytes("/d"), 0);
    file.write([new Uint8Array(1000).fill(4)], 0);
    throwsDiskError(() => file.preallocate(2000), "NoSpace");
    file.truncate(100);
    assert.equal(disk.freeBytes("/d"), 924);
    disk.remove("/d/f");
    assert.equal(disk.freeBytes("/d"), 1024);
  });

  it("include flipped bits, which a crash does not revert", () => {
    const disk = diskWithFile(10);
    disk.corrupt("/d/f", 3, 0x10);
    assert.equal(disk.readAll("/d/f")[3], 0x11);
    disk.crash(new SeededRandom(1n));
    assert.equal(disk.readAll("/d/f")[3], 0x11);
  });
});
