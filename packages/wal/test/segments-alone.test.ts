/**
 * Every segment begins with what a reader needs who has nothing before it: older segments are
 * removed once a snapshot covers them, and the last state may have been written long before.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { SeededRandom } from "@quorate/host";
import { MemoryDisk } from "@quorate/host/testing";
import type { raftpb } from "@quorate/proto";
import { verifyWal, Wal, type WalSummary } from "@quorate/wal";
import { entry, memoryPlace, options, START, state } from "./support.ts";

const METADATA = new TextEncoder().encode("member 1");
const SEGMENT_BYTES = 1024;

/** What is read where the segment is all that there is. */
function alone(disk: MemoryDisk, dir: string, name: string): WalSummary {
  const other = new MemoryDisk();
  other.install(`/alone/wal/${name}`, disk.readAll(`${dir}/${name}`));
  return verifyWal(other, "/alone/wal");
}

for (const seed of [1n, 2n, 3n, 4n]) {
  it(`each segment alone holds the metadata and the state as of its end, seed ${seed}`, async () => {
    const random = new SeededRandom(seed);
    const { disk, root } = memoryPlace();
    const dir = `${root}/wal`;
    let wal = Wal.create(disk, dir, METADATA, options(SEGMENT_BYTES));
    let last: raftpb.HardState | undefined;
    let term = 1;
    for (let i = 1; wal.segmentNames.length < 12; i++) {
      // The state changes seldom, so that whole segments pass without a record of it.
      const isNew = last === undefined || random.below(40) === 0;
      if (isNew) last = state((term += random.below(2)), i, BigInt(1 + random.below(3)));
      wal.append(isNew ? last : undefined, [entry(i, term, random.below(200))]);
      await wal.sync();
      const summary = alone(disk, dir, wal.segmentNames.at(-1)!);
      assert.deepEqual(summary.hardState, last, `after entry ${i}, of ${wal.segmentNames.at(-1)}`);
      assert.deepEqual([...summary.metadata], [...METADATA]);
      if (random.below(30) > 0) continue;
      await wal.close();
      const opened = Wal.open(disk, dir, START, options(SEGMENT_BYTES));
      assert.deepEqual(opened.hardState, last);
      wal = opened.wal;
    }
    await wal.close();
  });
}
