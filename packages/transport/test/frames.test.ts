import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "@quorate/host";
import { raftpb } from "@quorate/proto";
import fc from "fast-check";
import { freshSeed } from "../../../test/support/fresh-seed.ts";
import { heldBytes } from "../../../test/support/memory.ts";
import {
  decodeMessage,
  END_FRAME,
  FrameBatch,
  FrameError,
  FrameReader,
  MAX_MESSAGE_ENTRIES,
} from "../src/frames.ts";

const SEED = 20_260_102;

function framesOf(reader: FrameReader): Buffer[] {
  const frames: Buffer[] = [];
  for (let frame = reader.take(); frame !== undefined; frame = reader.take())
    frames.push(Buffer.from(frame));
  return frames;
}

/**
 * Frames with contents of their own go through a stream that is cut as `cuts` says, and are taken
 * after every few pieces.
 */
function comesBack(
  lengths: readonly number[],
  cuts: readonly number[],
  seed: number,
  takeEvery: number,
): void {
  const random = new SeededRandom(BigInt(seed));
  // To draw each byte would take seconds. Each frame begins elsewhere in the pattern.
  const pattern = Buffer.from(Array.from({ length: 997 }, () => random.below(256)));
  const frames = lengths.map((length) =>
    Buffer.alloc(length, pattern.subarray(random.below(pattern.length))),
  );
  const batch = new FrameBatch();
  for (const frame of frames) batch.add(frame);
  const size = batch.sizeBytes;
  assert.equal(batch.count, frames.length);
  const stream = Buffer.concat(batch.take());
  assert.equal(stream.length, size);
  assert.deepEqual([batch.count, batch.sizeBytes], [0, 0]);
  const reader = new FrameReader(200_000);
  const views: Uint8Array[] = [];
  const copies: Buffer[] = [];
  for (let at = 0, i = 0; at < stream.length; i++) {
    const cut = cuts[i % cuts.length];
    reader.push(stream.subarray(at, at + cut));
    at += cut;
    if (i % takeEvery !== 0 && at < stream.length) continue;
    for (let frame = reader.take(); frame !== undefined; frame = reader.take()) {
      views.push(frame);
      copies.push(Buffer.from(frame));
    }
  }
  assert.deepEqual(copies, frames);
  assert.equal(reader.bufferedBytes, 0);
  // What was given out stays as it was, whatever came after it.
  assert.deepEqual(
    views.map((view) => Buffer.from(view)),
    frames,
  );
}

describe("frames", () => {
  for (const [seed, numRuns] of [
    [SEED, 200],
    [freshSeed(), 400],
  ] as const) {
    it(`come out as they went in, however the stream is cut, seed ${seed}`, () => {
      // Small frames and cuts meet where small chunks are gathered, and more of them come after a
      // part of those was taken.
      const sizes = fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 0, max: 40 }) },
        { weight: 3, arbitrary: fc.integer({ min: 0, max: 1500 }) },
        {
          weight: 1,
          arbitrary: fc.constantFrom(4091, 4092, 4093, 65_535, 65_536, 65_537, 200_000),
        },
      );
      const cuts = fc.oneof(
        { weight: 5, arbitrary: fc.integer({ min: 1, max: 30 }) },
        { weight: 3, arbitrary: fc.integer({ min: 1, max: 600 }) },
        { weight: 1, arbitrary: fc.integer({ min: 1, max: 70_000 }) },
      );
      const cutLists = fc.array(cuts, { minLength: 1, maxLength: 20 });
      fc.assert(
        fc.property(
          fc.array(sizes, { maxLength: 30 }),
          cutLists,
          fc.nat(),
          fc.integer({ min: 1, max: 6 }),
          comesBack,
        ),
        // A failure prints the seed and the path to its smallest case.
        { seed, numRuns },
      );
    });
  }

  it("come out each with its chunk, empty ones too", () => {
    const reader = new FrameReader(1000);
    for (const length of [0, 20, 0, 0, 300, 0, 1]) {
      const batch = new FrameBatch();
      batch.add(new Uint8Array(length));
      reader.push(Buffer.concat(batch.take()));
      assert.deepEqual(framesOf(reader), [Buffer.alloc(length)]);
      assert.equal(reader.bufferedBytes, 0);
    }
  });

  it("are gathered when they are small, and left where they are when they are big", () => {
    const batch = new FrameBatch();
    const big = new Uint8Array(100_000);
    for (const frame of [new Uint8Array(10), new Uint8Array(20), big, new Uint8Array(30)])
      batch.add(frame);
    const pieces = batch.take();
    assert.deepEqual(
      pieces.map((piece) => piece.length),
      [10 + 20 + 3 * 4, 100_000, 34],
    );
    assert.equal(pieces[1], big);
  });

  it("are refused by their length when they are too long", () => {
    const reader = new FrameReader(1000);
    reader.push(Buffer.from([0, 0, 3, 233]));
    assert.throws(() => reader.take(), new FrameError("frame of 1001 bytes is longer than 1000"));
  });

  it("do not cost an object a byte when they come byte by byte", async () => {
    const content = new Uint8Array(100_000).map((_, i) => i);
    const batch = new FrameBatch();
    batch.add(content);
    const stream = Buffer.concat(batch.take());
    const reader = new FrameReader(100_000);
    const before = await heldBytes();
    for (let i = 0; i < stream.length; i++) {
      if (i < 4) assert.equal(reader.take(), undefined);
      reader.push(stream.subarray(i, i + 1));
    }
    const grown = (await heldBytes()) - before;
    assert.ok(grown < 10 * stream.length, `${grown} bytes for ${stream.length} chunks`);
    assert.deepEqual(Buffer.from(reader.take()!), Buffer.from(content));
  });

  it("hold messages, or are refused", () => {
    const message = raftpb.Message.create({ type: 8, from: 1n, to: 2n, term: 3, commit: 4 });
    assert.deepEqual(decodeMessage(raftpb.Message.encode(message)), message);
    assert.throws(() => decodeMessage(Buffer.from([0xff, 0xff])), FrameError);
    assert.throws(() => decodeMessage(END_FRAME.subarray(0, 0)), FrameError);
  });

  it("hold no more entries than members send, counted before they are made", () => {
    const entries = (count: number) =>
      new Uint8Array(2 * count).map((_, i) => (i % 2 === 0 ? 0x3a : 0));
    assert.equal(decodeMessage(entries(MAX_MESSAGE_ENTRIES)).entries.length, MAX_MESSAGE_ENTRIES);
    assert.throws(
      () => decodeMessage(entries(4 * MAX_MESSAGE_ENTRIES)),
      /message of more than 32768 entries/,
    );
    // The shortest message whose entries are counted first.
    assert.throws(() => decodeMessage(entries(64 * 1024)), /message of more than 32768 entries/);
  });

  it("are gathered up to 64 KiB each", () => {
    const batch = new FrameBatch();
    for (const length of [64 * 1024, 64 * 1024 + 1, 1]) batch.add(new Uint8Array(length));
    const sizes = batch.take().map((piece) => piece.length);
    assert.deepEqual(sizes, [4 + 64 * 1024 + 4, 64 * 1024 + 1, 5]);
  });
});
