/** The preparation of segments, step by step on a manual clock. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { ManualClock, type MemoryDisk } from "@quorate/host/testing";
import { SegmentPipeline } from "../src/pipeline.ts";
import { memoryPlace } from "./support.ts";

const SEGMENT_BYTES = 40 << 20;

/** A disk on which every write of zeros and every sync takes 10 ms; `log` lists them. */
function slowDisk(): { disk: MemoryDisk; dir: string; clock: ManualClock; log: string[] } {
  const clock = new ManualClock();
  const { disk, root } = memoryPlace({ clock, syncDelayMs: () => 10 });
  const log: string[] = [];
  disk.fault = ({ kind, path, position, lengthBytes }) => {
    if (kind === "write") log.push(`${path.slice(6)} ${position! >> 20}+${lengthBytes! >> 20}`);
    if (kind === "sync") log.push(`${path.slice(6)} sync`);
    return undefined;
  };
  return { disk, dir: root, clock, log };
}

it("writes and syncs a few MiB at a time, and returns the file when all is done", async () => {
  const { disk, dir, clock, log } = slowDisk();
  const pipeline = new SegmentPipeline(disk, dir, SEGMENT_BYTES);
  pipeline.start();
  pipeline.start();
  await clock.advanceAsync(40);
  assert.deepEqual(log, ["0.tmp 0+4", "0.tmp sync", "0.tmp 4+4", "0.tmp sync"]);
  await clock.advanceAsync(160);
  assert.equal(log.length, 20);
  pipeline.start();
  const file = pipeline.take();
  assert.equal(file.path, "/data/0.tmp");
  assert.equal(file.size(), SEGMENT_BYTES);
  file.close();
  pipeline.start();
  assert.deepEqual(disk.list(dir), ["0.tmp", "1.tmp"]);
});

it("returns an empty file when none is ready, stops the preparation and removes what it made", async () => {
  const { disk, dir, clock, log } = slowDisk();
  const pipeline = new SegmentPipeline(disk, dir, SEGMENT_BYTES);
  pipeline.start();
  await clock.advanceAsync(35);
  const file = pipeline.take();
  assert.deepEqual([file.path, file.size()], ["/data/1.tmp", 0]);
  await clock.advanceAsync(5);
  assert.deepEqual(disk.list(dir), ["1.tmp"]);
  await clock.advanceAsync(500);
  assert.equal(log.length, 4, "no step is started after that");
});

it("waits at close for the step under way, and leaves nothing", async () => {
  const { disk, dir, clock } = slowDisk();
  const pipeline = new SegmentPipeline(disk, dir, SEGMENT_BYTES);
  await pipeline.close();
  pipeline.start();
  await clock.advanceAsync(15);
  let closed = false;
  void pipeline.close().then(() => {
    closed = true;
  });
  await clock.advanceAsync(4);
  assert.ok(!closed);
  await clock.advanceAsync(1);
  assert.ok(closed);
  assert.deepEqual(disk.list(dir), []);
});

it("tries again after a failure once a file was needed", async () => {
  const { disk, dir, clock } = slowDisk();
  const pipeline = new SegmentPipeline(disk, dir, SEGMENT_BYTES);
  disk.fault = ({ kind }) => (kind === "write" ? "NoSpace" : undefined);
  pipeline.start();
  await clock.advanceAsync(20);
  pipeline.start();
  assert.deepEqual(disk.list(dir), [], "it has failed, and is not tried for each record");
  disk.fault = undefined;
  pipeline.take().close();
  pipeline.start();
  assert.deepEqual(disk.list(dir), ["1.tmp", "2.tmp"]);
});

it("knows the names of its files", () => {
  assert.deepEqual(
    ["0.tmp", "12.tmp", "x.tmp", "0.tmp.old", "0000000000000000-0000000000000000.wal"].map((name) =>
      SegmentPipeline.owns(name),
    ),
    [true, true, false, false, false],
  );
});
