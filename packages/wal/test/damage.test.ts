/**
 * A sample log, cut at every length and flipped at every bit: each outcome is one of "replayed
 * whole", "tail dropped cleanly", "refused with its place", and never other entries than those that
 * were written.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type MemoryDisk, SECTOR_BYTES } from "@quorate/host/testing";
import { Wal, WalDamageError } from "@quorate/wal";
import { readWal } from "../src/reader.ts";
import { replay } from "../src/replay.ts";
import {
  entries,
  entry,
  installFixture,
  mark,
  memoryPlace,
  options,
  plain,
  START,
  state,
} from "./support.ts";

/** What a log amounts to when it is read up to a place in its last segment. */
type Content = { readonly entries: unknown; readonly hardState: unknown };

interface Sample {
  readonly disk: MemoryDisk;
  readonly dir: string;
  readonly names: readonly string[];
  readonly whole: Content;
  /** For each record of the last segment, where it starts, and what stands before it. */
  readonly before: ReadonlyMap<number, Content>;
  /** Where the records end, for each segment. */
  readonly ends: ReadonlyMap<string, number>;
  /** What the last durable mark of the last segment says. */
  readonly markedBytes: number;
}

const SEGMENT_BYTES = 2400;

/** Learns from an intact log what each place of it holds. */
function survey(disk: MemoryDisk, dir: string): Sample {
  const names = disk.list(dir).filter((name) => name.endsWith(".wal"));
  const last = names[names.length - 1];
  const ends = new Map<string, number>();
  const before = new Map<number, Content>();
  const read = replay(disk, dir, START);
  const whole = { entries: plain(read.entries), hardState: read.hardState };
  let markedBytes = 0;
  const places: number[] = [];
  for (const record of readWal(disk, dir)) {
    if (record.segment.name !== last) continue;
    places.push(record.offset);
    if (record.type === 4 && record.data.length > 0)
      markedBytes = new DataView(record.data.buffer, record.data.byteOffset).getUint32(0, true);
  }
  // Cut a copy of the last segment before each record: what a reader finds then is what stands
  // before it.
  for (const name of names) {
    const bytes = disk.readAll(`${dir}/${name}`);
    ends.set(name, bytes.findLastIndex((byte) => byte !== 0) + 1);
    if (name !== last) continue;
    for (const offset of places.slice(2)) {
      disk.install(`${dir}/${name}`, bytes.subarray(0, offset));
      const part = replay(disk, dir, START);
      before.set(offset, { entries: plain(part.entries), hardState: part.hardState });
    }
    disk.install(`${dir}/${name}`, bytes);
    before.set(read.end.offset, whole);
  }
  return { disk, dir, names, whole, before, ends, markedBytes };
}

/**
 * Three segments with replaced entries, states, a snapshot mark, durable marks, and a last batch
 * that no mark vouches for.
 */
async function ownSample(): Promise<Sample> {
  const { disk, root } = memoryPlace();
  const dir = `${root}/wal`;
  const wal = Wal.create(disk, dir, new TextEncoder().encode("member 1"), options(SEGMENT_BYTES));
  wal.append(state(1, 0, 2n), entries(1, 2));
  await wal.sync();
  let index = 2;
  let term = 2;
  for (; wal.segmentNames.length < 3; term += 2) {
    wal.append(state(term, index), [
      entry(index + 1, term, 5),
      entry(index + 2, term, 0),
      entry(index + 3, term, 30),
    ]);
    await wal.sync();
    wal.append(undefined, [entry(index + 2, term + 1, 1)]);
    index += 2;
  }
  for (let i = 0; i < 8; i++) {
    wal.append(state(term, index), [entry(++index, term, 40)]);
    await wal.sync();
  }
  await wal.saveSnapshot(mark(7, 3));
  wal.append(state(term, index), entries(index + 1, index + 3, term, 100));
  await wal.close();
  return survey(disk, dir);
}

type Outcome = "whole" | "dropped" | "refused";

/** Reads the log as it is now and checks that what comes out is one of the three outcomes. */
function outcomeOf(
  sample: Sample,
  what: string,
): { readonly outcome: Outcome; readonly error?: WalDamageError } {
  const { disk, dir, whole, before } = sample;
  try {
    const read = replay(disk, dir, START);
    const content = { entries: plain(read.entries), hardState: read.hardState };
    const expected = before.get(read.end.offset);
    assert.ok(
      expected,
      `${what}: the log ends at ${read.end.offset}, which is no place between records`,
    );
    assert.deepEqual(content, expected, what);
    return { outcome: expected === whole ? "whole" : "dropped" };
  } catch (error) {
    if (!(error instanceof WalDamageError)) throw error;
    assert.ok(
      error.message.startsWith(`${error.path}: damaged at byte ${error.offset}: `),
      error.message,
    );
    return { outcome: "refused", error };
  }
}

/**
 * What real opening does after reading came to `outcome`: the same, and a log that can be written
 * to and read again.
 */
async function checkOpening(sample: Sample, outcome: Outcome): Promise<void> {
  const { dir } = sample;
  const { disk } = memoryPlace();
  for (const name of sample.names)
    disk.install(`${dir}/${name}`, sample.disk.readAll(`${dir}/${name}`));
  if (outcome === "refused") {
    const files = sample.names.map((name) => disk.readAll(`${dir}/${name}`));
    assert.throws(() => Wal.open(disk, dir, START, options(SEGMENT_BYTES)), WalDamageError);
    assert.deepEqual(
      sample.names.map((name) => disk.readAll(`${dir}/${name}`)),
      files,
      "a refusal changes nothing",
    );
    return;
  }
  const opened = Wal.open(disk, dir, START, options(SEGMENT_BYTES));
  const next = opened.wal.lastIndex + 1;
  opened.wal.append(undefined, entries(next, next + 20, 99));
  await opened.wal.close();
  const again = replay(disk, dir, START);
  assert.equal(again.end.tornBytes, 0);
  assert.deepEqual(
    plain(again.entries),
    plain([...opened.entries, ...entries(next, next + 20, 99)]),
  );
}

async function flipEverything(sample: Sample): Promise<Record<Outcome, number>> {
  const { disk, dir, names, ends } = sample;
  const counts = { whole: 0, dropped: 0, refused: 0 };
  for (const [segment, name] of names.entries()) {
    const path = `${dir}/${name}`;
    const end = ends.get(name) as number;
    const sizeBytes = disk.readAll(path).length;
    for (let position = 0; position < sizeBytes; position++) {
      for (let mask = 1; mask < 256; mask <<= 1) {
        const what = `${name} byte ${position} mask ${mask}`;
        disk.corrupt(path, position, mask);
        const { outcome, error } = outcomeOf(sample, what);
        counts[outcome]++;
        if (position < end) {
          // What was written and is not as it was written is never taken for the end of the log.
          assert.equal(outcome, "refused", what);
          const where = names.findIndex((other) => error!.path === `${dir}/${other}`);
          assert.ok(
            where === segment
              ? error!.offset <= position + 32
              : where === segment + 1 && error!.offset === 0,
            `${what}: ${error!.message}`,
          );
        } else if (outcome === "refused") {
          assert.equal(error!.path, path, what);
          assert.equal(error!.offset % 8, 0);
        }
        if (mask === 1 && position % 29 === 0) await checkOpening(sample, outcome);
        disk.corrupt(path, position, mask);
      }
    }
  }
  assert.equal(outcomeOf(sample, "all put back").outcome, "whole");
  return counts;
}

async function cutEverywhere(sample: Sample): Promise<Record<Outcome, number>> {
  const { disk, dir, names, ends } = sample;
  const counts = { whole: 0, dropped: 0, refused: 0 };
  for (const name of names) {
    const path = `${dir}/${name}`;
    const bytes = disk.readAll(path);
    for (let length = 0; length < bytes.length; length++) {
      disk.install(path, bytes.subarray(0, length));
      const what = `${name} cut to ${length}`;
      const { outcome } = outcomeOf(sample, what);
      counts[outcome]++;
      if (length >= Math.ceil((ends.get(name) as number) / 8) * 8)
        assert.equal(outcome, "whole", what);
      else if (name !== names[names.length - 1]) assert.equal(outcome, "refused", what);
      if (length % 13 === 0) await checkOpening(sample, outcome);
    }
    disk.install(path, bytes);
  }
  return counts;
}

/** Zeros each sector, and each sector with all behind it. */
async function loseSectors(sample: Sample): Promise<Record<Outcome, number>> {
  const { disk, dir, names, ends, markedBytes } = sample;
  const counts = { whole: 0, dropped: 0, refused: 0 };
  let counted = 0;
  for (const name of names) {
    const path = `${dir}/${name}`;
    const bytes = disk.readAll(path);
    for (let sector = 0; sector < bytes.length; sector += SECTOR_BYTES) {
      for (const end of [sector + SECTOR_BYTES, bytes.length]) {
        const what = `${name} without ${sector} to ${end}`;
        disk.install(path, bytes.slice().fill(0, sector, end));
        const { outcome } = outcomeOf(sample, what);
        counts[outcome]++;
        // A mark that stands says that what is before it was on the disk.
        const vouched =
          name !== names[names.length - 1] ||
          (end === sector + SECTOR_BYTES && sector < markedBytes && end <= markedBytes);
        if (vouched && sector < (ends.get(name) as number)) assert.equal(outcome, "refused", what);
        await checkOpening(sample, outcome);
        if (vouched) counted++;
      }
    }
    disk.install(path, bytes);
  }
  assert.ok(counted >= 12, `${counted} of the lost ranges were known to have been on the disk`);
  return counts;
}

describe("a log of ours", () => {
  it("is refused with its place for every flipped bit of what was written", async (t) => {
    const counts = await flipEverything(await ownSample());
    t.diagnostic(JSON.stringify(counts));
    assert.ok(counts.refused > 20_000 && counts.dropped === 0);
  });

  it("loses its tail or is refused when it is cut, at every length", async (t) => {
    const counts = await cutEverywhere(await ownSample());
    t.diagnostic(JSON.stringify(counts));
    assert.ok(counts.dropped > 500 && counts.refused > 2000);
  });

  it("loses its tail or is refused when sectors are lost", async (t) => {
    const counts = await loseSectors(await ownSample());
    t.diagnostic(JSON.stringify(counts));
    assert.ok(counts.dropped >= 2 && counts.refused >= 10);
  });
});

describe("a log that etcd wrote", () => {
  const sample = (): Sample => {
    const { disk, root } = installFixture("etcd-3.7");
    return survey(disk, `${root}/wal`);
  };

  it("is refused with its place for every flipped bit of what was written", async (t) => {
    const counts = await flipEverything(sample());
    t.diagnostic(JSON.stringify(counts));
    assert.ok(counts.refused > 40_000 && counts.dropped === 0);
  });

  it("loses its tail or is refused when it is cut, at every length", async (t) => {
    const counts = await cutEverywhere(sample());
    t.diagnostic(JSON.stringify(counts));
    assert.ok(counts.dropped > 300 && counts.refused > 2000);
  });
});
