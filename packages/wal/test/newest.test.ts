/**
 * A log that is read once has the content that two passes find: the newest mark first, then what
 * follows it. Random logs, with replaced entries, received snapshots and segments that are gone.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { MemoryDisk } from "@quorate/host/testing";
import { Wal } from "@quorate/wal";
import { replayNewest, replayOnce } from "../src/newest.ts";
import { replay } from "../src/replay.ts";
import { validSnapshotMarks } from "../src/verify.ts";
import { entries, entry, mark, memoryPlace, options, START, state } from "./support.ts";

const DIR = "/data/wal";
const SEGMENT_BYTES = 64 << 10;

function twoPasses(disk: MemoryDisk) {
  const from = validSnapshotMarks(disk, DIR).at(-1) ?? START;
  return { ...replay(disk, DIR, from), from };
}

/** All but what counts the records and segments that were read. */
function content({ from, metadata, hardState, entries, end, rules }: ReturnType<typeof twoPasses>) {
  const { offset, crc, durableBytes, tornBytes } = end;
  return { from, metadata, hardState, entries, offset, crc, durableBytes, tornBytes, rules };
}

function create(disk: MemoryDisk, segmentBytes = 1024): Wal {
  return Wal.create(disk, DIR, new Uint8Array([7]), options(segmentBytes));
}

/** Writes a log as a member might, with terms that change and a leader that sends snapshots. */
async function writeLog(disk: MemoryDisk, seed: number): Promise<void> {
  const random = new SeededRandom(BigInt(seed));
  const wal = create(disk, 512 << random.below(4));
  const isPlain = random.below(2) === 0;
  let [term, last, commit, marked] = [1, 0, 0, 0];
  const termOf = new Map<number, number>();
  for (let step = random.below(60); step >= 0; step--) {
    const choice = random.below(12);
    if (choice < 7) {
      if (random.below(8) === 0) term++;
      const from = isPlain ? last + 1 : Math.max(commit, last - random.below(3)) + 1;
      const to = from + random.below(12);
      for (let index = from; index <= to; index++) termOf.set(index, term);
      commit = Math.min(Math.max(commit, last - random.below(4)), from - 1);
      last = to;
      wal.append(state(term, commit), entries(from, to, term));
    } else if (choice < 9 && commit > marked) {
      marked += 1 + random.below(commit - marked);
      await wal.saveSnapshot(mark(marked, termOf.get(marked)!));
    } else if (choice === 9) wal.release(marked, random.below(3));
    else if (choice === 10 && last > commit) {
      commit += random.below(last - commit + 1);
      wal.append(state(term, commit), []);
    } else if (choice === 11 && !isPlain) {
      marked = last + 1 + random.below(5);
      termOf.set(marked, term);
      await wal.saveSnapshot(mark(marked, term));
      last = marked;
      // It may stop before the state that commits the snapshot.
      if (random.below(4) === 0) break;
      commit = marked;
      wal.append(state(term, commit), []);
    }
  }
  await wal.close();
}

describe("a log that is read once", () => {
  it("has the content that two passes find, in random logs", async () => {
    let once = 0;
    for (let seed = 1; seed <= 400; seed++) {
      const { disk } = memoryPlace();
      await writeLog(disk, seed);
      let expected: ReturnType<typeof twoPasses>;
      try {
        expected = twoPasses(disk);
      } catch (error) {
        const { name, message } = error as Error;
        assert.throws(() => replayNewest(disk, DIR), { name, message }, `seed ${seed}`);
        continue;
      }
      assert.deepEqual(content(replayNewest(disk, DIR)), content(expected), `seed ${seed}`);
      if (replayOnce(disk, DIR) !== undefined) once++;
    }
    // Half of the logs are plain; a snapshot from a leader is read twice.
    assert.ok(once > 200, `${once} of 400 were read once`);
  });

  it("has it where the newest mark is not committed", async () => {
    const { disk } = memoryPlace();
    const wal = create(disk);
    wal.append(state(1, 4), entries(1, 9));
    await wal.saveSnapshot(mark(3, 1));
    await wal.saveSnapshot(mark(6, 1));
    await wal.close();
    const found = replayOnce(disk, DIR);
    assert.deepEqual([found?.from.index, found?.entries.length], [3, 6]);
  });

  it("is one whose first segments are gone, too", async () => {
    const { disk } = memoryPlace();
    const wal = create(disk);
    for (let i = 1; i <= 100; i++) wal.append(state(1, i), [entry(i)]);
    await wal.saveSnapshot(mark(90, 1));
    assert.ok(wal.release(90).length > 0);
    await wal.close();
    const found = replayOnce(disk, DIR);
    assert.deepEqual([found?.from.index, found?.entries.length], [90, 10]);
  });

  it("reads each byte of the log once", async () => {
    const { disk } = memoryPlace();
    const wal = create(disk, SEGMENT_BYTES);
    for (let i = 1; i <= 4000; i++) {
      wal.append(state(1, i), [entry(i)]);
      if (i % 500 === 0) await wal.saveSnapshot(mark(i, 1));
    }
    await wal.close();
    let readBytes = 0;
    const opening = disk.open.bind(disk);
    disk.open = (path, mode) => {
      const file = opening(path, mode);
      const read = file.read.bind(file);
      file.read = (target, position) => {
        const count = read(target, position);
        readBytes += count;
        return count;
      };
      return file;
    };
    const bytesOf = (run: () => unknown): number => {
      readBytes = 0;
      run();
      return readBytes;
    };
    const sizeBytes = disk
      .list(DIR)
      .reduce((sum, name) => sum + disk.stat(`${DIR}/${name}`)!.sizeBytes, 0);
    const once = bytesOf(() => assert.equal(replayNewest(disk, DIR).from.index, 4000));
    // The zeros behind the end are looked at once more.
    assert.ok(once <= sizeBytes + SEGMENT_BYTES, `${once} of ${sizeBytes} bytes`);
    assert.ok(bytesOf(() => twoPasses(disk)) >= once + SEGMENT_BYTES / 2);
  });

  it("reports a damaged record as two passes do", async () => {
    const { disk } = memoryPlace();
    const wal = create(disk);
    for (let i = 1; i <= 200; i++) wal.append(state(1, i), [entry(i)]);
    await wal.saveSnapshot(mark(150, 1));
    await wal.close();
    disk.corrupt(`${DIR}/${disk.list(DIR)[0]}`, 300, 4);
    const read = (run: () => unknown): string => {
      try {
        run();
      } catch (error) {
        return (error as Error).message;
      }
      return "nothing was reported";
    };
    assert.match(
      read(() => replayNewest(disk, DIR)),
      /checksum|decoded/,
    );
    assert.equal(
      read(() => replayNewest(disk, DIR)),
      read(() => twoPasses(disk)),
    );
  });
});
