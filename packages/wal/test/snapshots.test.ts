/** Snapshot files on both kinds of disk. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { SeededRandom } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import type { raftpb } from "@quorate/proto";
import { parseSnapshotName, SnapshotFiles } from "@quorate/wal";
import { mark, memoryPlace, type Place, places } from "./support.ts";

function snapshot(index: number, term: number): raftpb.Snapshot {
  return {
    data: new TextEncoder().encode(`state ${index}`),
    metadata: { confState: mark(index, term).confState!, index, term },
  };
}

for (const [name, makePlace] of places) {
  describe(`snapshot files on ${name}`, () => {
    let place: Place;
    let files: SnapshotFiles;

    beforeEach(() => {
      place = makePlace();
      files = new SnapshotFiles(place.disk, place.root);
    });
    afterEach(() => place.cleanUp());

    const content = (loaded: ReturnType<SnapshotFiles["load"]>) =>
      loaded && [loaded.snapshot.metadata.index, new TextDecoder().decode(loaded.snapshot.data)];

    it("load the newest that the log knows, by term and then by index", () => {
      for (const [index, term] of [
        [10, 1],
        [300, 2],
        [20, 3],
        [25, 3],
      ]) {
        files.save(snapshot(index, term));
      }
      assert.deepEqual(place.disk.list(place.root), [
        "0000000000000001-000000000000000a.snap",
        "0000000000000002-000000000000012c.snap",
        "0000000000000003-0000000000000014.snap",
        "0000000000000003-0000000000000019.snap",
      ]);
      assert.deepEqual(content(files.load([mark(10, 1), mark(300, 2), mark(20, 3), mark(25, 3)])), [
        25,
        "state 25",
      ]);
      assert.deepEqual(content(files.load([mark(20, 3), mark(10, 1)])), [20, "state 20"]);
      assert.deepEqual(content(files.load([mark(300, 3), mark(10, 1)])), [10, "state 10"]);
      assert.equal(files.load([mark(11, 1)]), undefined);
      assert.equal(files.load([]), undefined);
      assert.equal(
        files.load([mark(10, 1)])?.path,
        `${place.root}/0000000000000001-000000000000000a.snap`,
      );
    });

    it("take one that cannot be read out of the way and load the one before", () => {
      const marks = [mark(10, 1), mark(20, 1), mark(30, 1), mark(40, 1), mark(50, 1)];
      const paths = marks.map(({ index, term }) => files.save(snapshot(index, term)));
      const good = place.disk.readAll(paths[4]);
      place.disk.replace(paths[4], good.subarray(0, good.length - 1));
      place.disk.replace(paths[3], new Uint8Array(0));
      const flipped = place.disk.readAll(paths[2]);
      flipped[flipped.length - 3] ^= 1;
      place.disk.replace(paths[2], flipped);
      place.disk.replace(paths[1], place.disk.readAll(paths[0]));
      const reported: string[] = [];
      assert.deepEqual(
        content(files.load(marks, (path, reason) => reported.push(`${path.slice(-7)} ${reason}`))),
        [10, "state 10"],
      );
      assert.equal(reported.length, 4);
      assert.match(reported[0], /^32\.snap the file cannot be decoded/);
      assert.equal(reported[1], "28.snap the file is empty");
      assert.equal(reported[2], "1e.snap the checksum does not match");
      assert.equal(reported[3], "14.snap the file holds the snapshot of term 1 and index 10");
      assert.deepEqual(
        place.disk.list(place.root),
        paths.map((path, i) => path.slice(place.root.length + 1) + (i > 0 ? ".broken" : "")),
      );
    });

    it("are replaced whole when saved again", () => {
      const path = files.save(snapshot(10, 1));
      place.disk.replace(path, new Uint8Array([1]));
      assert.equal(files.save(snapshot(10, 1)), path);
      assert.deepEqual(content(files.load([mark(10, 1)])), [10, "state 10"]);
    });

    it("are purged to the newest, with the leftovers of unfinished ones", () => {
      for (const index of [10, 20, 30, 40]) files.save(snapshot(index, 1));
      for (const other of [
        "0000000000000001-0000000000000032.snap.tmp",
        "db",
        "0000000000000001-0000000000000001.snap.broken",
      ]) {
        place.disk.replace(`${place.root}/${other}`, new Uint8Array([1]));
      }
      assert.deepEqual(files.purge(2), [
        "0000000000000001-0000000000000014.snap",
        "0000000000000001-000000000000000a.snap",
        "0000000000000001-0000000000000032.snap.tmp",
      ]);
      assert.deepEqual(files.purge(0), ["0000000000000001-000000000000001e.snap"]);
      assert.deepEqual(place.disk.list(place.root), [
        "0000000000000001-0000000000000001.snap.broken",
        "0000000000000001-0000000000000028.snap",
        "db",
      ]);
    });
  });
}

it("a snapshot that was saved is there after a crash, whole", () => {
  for (let seed = 1n; seed <= 30n; seed++) {
    const { disk, root } = memoryPlace();
    const files = new SnapshotFiles(disk, root);
    files.save(snapshot(10, 1));
    disk.crash(new SeededRandom(seed));
    assert.equal(files.load([mark(10, 1)])?.snapshot.metadata.index, 10);
  }
});

it("no flipped bit of a snapshot file changes what is loaded", () => {
  const { disk, root } = memoryPlace();
  const files = new SnapshotFiles(disk, root);
  const path = files.save(snapshot(10, 1));
  const bits = disk.readAll(path).length * 8;
  let refused = 0;
  for (let bit = 0; bit < bits; bit++) {
    disk.corrupt(path, bit >> 3, 1 << (bit & 7));
    const loaded = files.load([mark(10, 1)]);
    if (loaded) assert.deepEqual(loaded.snapshot, snapshot(10, 1), `bit ${bit}`);
    else {
      refused++;
      disk.rename(`${path}.broken`, path);
    }
    disk.corrupt(path, bit >> 3, 1 << (bit & 7));
  }
  // Bits above the 32 of a checksum that is written in five bytes say nothing.
  assert.ok(refused >= bits - 3, `${refused} of ${bits} refused`);
});

it("the time that a save takes is told", () => {
  const { disk, root } = memoryPlace();
  const clock = new ManualClock();
  const took: number[] = [];
  const { replace } = disk;
  disk.replace = (...args) => {
    clock.advance(7);
    replace.apply(disk, args);
  };
  clock.advance(100);
  new SnapshotFiles(disk, root, { clock, onSave: (ms) => took.push(ms) }).save(snapshot(10, 1));
  assert.deepEqual(took, [7]);
});

it("a file that was taken out of the way stays so after a crash", () => {
  for (let seed = 1n; seed <= 30n; seed++) {
    const { disk, root } = memoryPlace();
    const files = new SnapshotFiles(disk, root);
    const path = files.save(snapshot(10, 1));
    disk.replace(path, new Uint8Array([1]));
    assert.equal(files.load([mark(10, 1)]), undefined);
    disk.crash(new SeededRandom(seed));
    assert.deepEqual(disk.list(root), [`${path.slice(root.length + 1)}.broken`]);
  }
});

it("the name of a file is its term and index", () => {
  assert.deepEqual(parseSnapshotName("0000000000000002-000000000000000a.snap"), {
    term: 2,
    index: 10,
  });
  assert.equal(parseSnapshotName("0000000000000002-000000000000000a.wal"), undefined);
});
