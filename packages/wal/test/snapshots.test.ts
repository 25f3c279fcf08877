/** Snapshot files on both kinds of disk. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { SeededRandom } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import type { raftpb } from "@quorate/proto";
import { parseSnapshotName, SnapshotFiles } from "@quorate/wal";
import { mark, memoryPlace, type Place, places, snapshotIn } from "./support.ts";

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

    it("are named by term and index, and hold what etcd reads", () => {
      const path = files.save(snapshot(300, 2));
      assert.equal(path, `${place.root}/0000000000000002-000000000000012c.snap`);
      assert.deepEqual(snapshotIn(place.disk, path), snapshot(300, 2));
    });

    it("are replaced whole when saved again", () => {
      const path = files.save(snapshot(10, 1));
      place.disk.replace(path, new Uint8Array([1]));
      assert.equal(files.save(snapshot(10, 1)), path);
      assert.deepEqual(snapshotIn(place.disk, path), snapshot(10, 1));
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
    const path = files.save(snapshot(10, 1));
    disk.crash(new SeededRandom(seed));
    assert.deepEqual(snapshotIn(disk, path), snapshot(10, 1));
  }
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

it("the name of a file is its term and index", () => {
  assert.deepEqual(parseSnapshotName("0000000000000002-000000000000000a.snap"), {
    term: 2,
    index: 10,
  });
  assert.equal(parseSnapshotName("0000000000000002-000000000000000a.wal"), undefined);
});
