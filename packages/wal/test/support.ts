/** What the tests of this package share. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Disk } from "@quorate/host";
import { nodeDisk } from "@quorate/host/node";
import { ManualClock, MemoryDisk } from "@quorate/host/testing";
import { crc32c, raftpb, snappb, walpb } from "@quorate/proto";
import { parseSnapshotName, type WalMeasures, type WalOptions } from "@quorate/wal";

const clock = new ManualClock();

/** Options with small segments. */
export function options(segmentBytes = 4096): WalOptions {
  return { clock, segmentBytes };
}

/** Measures of a log, and what was reported to them. */
export function measured(): {
  readonly measures: WalMeasures;
  readonly syncsMs: number[];
  readonly writesMs: number[];
  readonly writesBytes: number[];
} {
  const syncsMs: number[] = [];
  const writesMs: number[] = [];
  const writesBytes: number[] = [];
  let total = 0;
  const measures = {
    syncSeconds: { observe: (seconds: number) => void syncsMs.push(seconds * 1000) },
    writeSeconds: { observe: (seconds: number) => void writesMs.push(seconds * 1000) },
    writtenBytes: {
      get value() {
        return total;
      },
      set value(next: number) {
        writesBytes.push(next - total);
        total = next;
      },
    },
  };
  return { measures, syncsMs, writesMs, writesBytes };
}

/** Stands for "from the beginning". */
export const START: walpb.Snapshot = walpb.Snapshot.create();

/** The mark of a snapshot with one voter. */
export function mark(index: number, term: number): walpb.Snapshot {
  return {
    index,
    term,
    confState: {
      voters: [1n],
      learners: [],
      votersOutgoing: [],
      learnersNext: [],
      autoLeave: false,
    },
  };
}

/** An entry with unique data that contains no zeros. */
export function entry(index: number, term = 1, dataBytes = 20): raftpb.Entry {
  const data = new Uint8Array(dataBytes);
  for (let i = 0; i < dataBytes; i++) data[i] = 1 + ((index * 31 + term * 7 + i) % 255);
  return { type: 0, term, index, data };
}

export function entries(from: number, to: number, term = 1, dataBytes = 20): raftpb.Entry[] {
  return Array.from({ length: to - from + 1 }, (_, i) => entry(from + i, term, dataBytes));
}

export function state(term: number, commit: number, vote = 0x1701f7e3861531d4n): raftpb.HardState {
  return { term, vote, commit };
}

/** Entries in a form that deepEqual compares by content. */
export function plain(
  list: readonly raftpb.Entry[],
): { type: number; term: number; index: number; data: string }[] {
  return list.map(({ type, term, index, data }) => ({
    type,
    term,
    index,
    data: Buffer.from(data).toString("hex"),
  }));
}

/** A disk and a durable directory on it. */
export interface Place {
  readonly disk: Disk;
  readonly root: string;
  cleanUp(): void;
}

/** Both kinds of disk. */
export const places: readonly (readonly [name: string, make: () => Place])[] = [
  [
    "node disk",
    () => {
      const root = mkdtempSync(join(tmpdir(), "quorate-wal-"));
      return { disk: nodeDisk, root, cleanUp: () => rmSync(root, { recursive: true }) };
    },
  ],
  ["memory disk", () => ({ ...memoryPlace(), cleanUp() {} })],
];

export function memoryPlace(options?: ConstructorParameters<typeof MemoryDisk>[0]): {
  disk: MemoryDisk;
  root: string;
} {
  const disk = new MemoryDisk(options);
  disk.makeDir("/data");
  disk.syncDir("/");
  return { disk, root: "/data" };
}

/** Puts a directory of fixtures on a memory disk under the same names. */
export function installFixture(name: string): { disk: MemoryDisk; root: string } {
  const { disk, root } = memoryPlace();
  const from = join(import.meta.dirname, "fixtures", name);
  for (const directory of ["wal", "snap"]) {
    for (const file of readdirSync(join(from, directory)))
      disk.install(`${root}/${directory}/${file}`, readFileSync(join(from, directory, file)));
  }
  return { disk, root };
}

/** The snapshot in a file that is whole, as etcd reads it. */
export function snapshotIn(disk: Disk, path: string): raftpb.Snapshot {
  const { crc, data } = snappb.Snapshot.decode(disk.readAll(path));
  assert.equal(crc32c(0, data), crc);
  const snapshot = raftpb.Snapshot.decode(data);
  const { term, index } = snapshot.metadata;
  assert.deepEqual(parseSnapshotName(path.slice(path.lastIndexOf("/") + 1)), { term, index });
  return snapshot;
}

/** The newest of a directory's snapshots. */
export function newestSnapshot(disk: Disk, dir: string): raftpb.Snapshot {
  return snapshotIn(disk, `${dir}/${disk.list(dir).at(-1)}`);
}
