/** Which sync makes what durable, on a disk whose syncs take a while. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { verifyWal, Wal } from "@quorate/wal";
import { FrameEncoder } from "../src/encoder.ts";
import { entry, measured, memoryPlace, options, state } from "./support.ts";

const SYNC_MS = 10;

function setUp() {
  const clock = new ManualClock();
  const { disk, root } = memoryPlace({ clock, syncDelayMs: () => SYNC_MS });
  const dir = `${root}/wal`;
  const { measures, syncsMs } = measured();
  const metadata = new TextEncoder().encode("member 1");
  const wal = Wal.create(disk, dir, metadata, { ...options(), clock, measures });
  const notes: string[] = [];
  /** Notes when a sync that was asked for is over. */
  const ask = (name: string) =>
    void wal.sync().then(
      () => notes.push(`${name} is durable`),
      () => notes.push(`${name} is not`),
    );
  return { clock, disk, dir, wal, syncsMs, notes, ask };
}

/** Bytes of the frame of an entry. */
function frameBytes(index: number, dataBytes: number): number {
  const encoder = new FrameEncoder(0);
  encoder.entry(entry(index, 1, dataBytes));
  return encoder.sizeBytes;
}

it("callers share the running sync only for the very bytes that it makes durable", async () => {
  const { clock, disk, dir, wal, notes, ask } = setUp();
  wal.append(state(1, 0), [entry(1, 1, 1000)]);
  const lengthBytes = verifyWal(disk, dir).endOffset;
  ask("first");
  ask("same");
  wal.append(undefined, [entry(2, 1, 4096)]);
  assert.equal(wal.segmentNames.length, 2);
  const leftBytes = lengthBytes - verifyWal(disk, dir).endOffset;
  const dataBytes = leftBytes - (frameBytes(3, 200) - 200);
  wal.append(undefined, [entry(3, 1, dataBytes)]);
  assert.equal(verifyWal(disk, dir).endOffset, lengthBytes, "as long as the one before was");
  ask("next segment");
  await clock.advanceAsync(SYNC_MS);
  assert.deepEqual(notes.splice(0), ["first is durable", "same is durable"]);
  await clock.advanceAsync(SYNC_MS);
  assert.deepEqual(notes, ["next segment is durable"]);
});

it("nothing is synced where all is durable, also for those who waited", async () => {
  const { clock, wal, syncsMs, notes, ask } = setUp();
  wal.append(state(1, 0), [entry(1)]);
  ask("first");
  wal.append(undefined, [entry(2)]);
  ask("second");
  // The change of segments syncs all that was written.
  wal.append(undefined, [entry(3, 1, 4096)]);
  const syncsOfChange = syncsMs.length;
  await clock.advanceAsync(SYNC_MS);
  assert.deepEqual(notes.splice(0).sort(), ["first is durable", "second is durable"]);
  ask("third");
  await clock.settle();
  assert.deepEqual(notes, ["third is durable"]);
  assert.equal(syncsMs.length, syncsOfChange + 1);
});

it("a sync that fails is told to all who wait, and ends the log", async () => {
  const { clock, disk, wal, notes, ask } = setUp();
  disk.fault = ({ kind }) => (kind === "sync" ? "Io" : undefined);
  wal.append(state(1, 0), [entry(1)]);
  ask("first");
  wal.append(undefined, [entry(2)]);
  ask("second");
  await clock.advanceAsync(SYNC_MS);
  assert.deepEqual(notes, ["second is not", "first is not"]);
  assert.throws(() => wal.append(undefined, [entry(3)]), /cannot be used after an error/);
});
