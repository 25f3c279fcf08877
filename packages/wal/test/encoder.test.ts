/** The hand-written encoder against the generated codecs, which are its slow model. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { SeededRandom } from "@quorate/host";
import { concat, crc32c, raftpb, walpb } from "@quorate/proto";
import { FrameEncoder } from "../src/encoder.ts";
import { decodeMark, RecordType } from "../src/format.ts";

/** A frame by the book. */
function frame(type: number, crc: number, data: Uint8Array): Uint8Array {
  const record = walpb.Record.encode({ type, crc, data });
  const padBytes = (8 - (record.length % 8)) % 8;
  const word = new Uint8Array(8);
  new DataView(word.buffer).setBigUint64(
    0,
    BigInt(record.length) | (padBytes ? BigInt(0x80 | padBytes) << 56n : 0n),
    true,
  );
  return concat([word, record, new Uint8Array(padBytes)]);
}

const LENGTHS = [0, 1, 7, 100, 127, 128, 300, 8191, 8192, 8193, 20_000, 70_000];
const NUMBERS = [
  1,
  127,
  128,
  0x7fff_ffff,
  0x8000_0000,
  2 ** 35 - 1,
  2 ** 35,
  Number.MAX_SAFE_INTEGER,
];

it("produces the same bytes for entries of every size, mixed with other records", () => {
  const random = new SeededRandom(1n);
  const pick = <T>(from: readonly T[]): T => from[random.below(from.length)];
  const crcLengths = new Set<number>();
  for (let round = 0; round < 300; round++) {
    const start = random.below(4) === 0 ? 0 : random.uint32();
    const encoder = new FrameEncoder(start);
    let crc = start;
    const expected: Uint8Array[] = [];
    for (let i = random.below(12); i >= 0; i--) {
      const data = new Uint8Array(pick(LENGTHS)).fill(random.below(256));
      const kind = random.below(5);
      if (kind === 0) {
        encoder.crcRecord();
        expected.push(frame(RecordType.Crc, crc, new Uint8Array(0)));
      } else if (kind === 1) {
        encoder.record(RecordType.Metadata, data);
        crc = crc32c(crc, data);
        expected.push(frame(RecordType.Metadata, crc, data));
      } else {
        const entry = { type: random.below(3), term: pick(NUMBERS), index: pick(NUMBERS), data };
        encoder.entry(entry);
        const encoded = raftpb.Entry.encode(entry);
        crc = crc32c(crc, encoded);
        expected.push(frame(RecordType.Entry, crc, encoded));
      }
      crcLengths.add(crc < 2 ** 7 ? 1 : crc < 2 ** 28 ? 4 : 5);
      assert.equal(encoder.crc, crc);
    }
    const bytes = concat(encoder.chunks());
    assert.equal(encoder.sizeBytes, bytes.length);
    assert.ok(Buffer.from(concat(expected)).equals(bytes), `round ${round}`);
  }
  assert.ok(crcLengths.has(4) && crcLengths.has(5));
});

it("produces the same bytes for checksums of every length", () => {
  // Empty data leaves the checksum as it is, so a record can be made to show any.
  for (const crc of [
    0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000, 0xfff_ffff, 0x1000_0000, 0xffff_ffff,
  ]) {
    const encoder = new FrameEncoder(crc);
    encoder.record(RecordType.Metadata, new Uint8Array(0));
    assert.deepEqual(
      Buffer.from(concat(encoder.chunks())),
      Buffer.from(frame(RecordType.Metadata, crc, new Uint8Array(0))),
    );
  }
  // Entries: look for starts that end in a short checksum.
  const entry = { type: 0, term: 1, index: 1, data: new Uint8Array([1, 2, 3]) };
  const encoded = raftpb.Entry.encode(entry);
  const lengths = new Set<number>();
  for (let start = 0; lengths.size < 3 && start < 200_000; start++) {
    const crc = crc32c(start, encoded);
    const length = crc < 2 ** 14 ? 2 : crc < 2 ** 21 ? 3 : crc < 2 ** 28 ? 4 : 5;
    if (length === 2 || lengths.has(length)) continue;
    lengths.add(length);
    const encoder = new FrameEncoder(start);
    encoder.entry(entry);
    assert.deepEqual(
      Buffer.from(concat(encoder.chunks())),
      Buffer.from(frame(RecordType.Entry, crc, encoded)),
    );
  }
  assert.deepEqual([...lengths].sort(), [3, 4, 5]);
});

it("writes marks that leave the checksum alone", () => {
  const encoder = new FrameEncoder(77);
  encoder.mark(4096);
  assert.equal(encoder.crc, 77);
  const [bytes] = encoder.chunks();
  const record = walpb.Record.decode(bytes.subarray(8, 8 + bytes[0]));
  assert.equal(record.type, RecordType.Crc);
  assert.equal(record.crc, 77);
  assert.equal(decodeMark(record.data), 4096);
});

it("hands on large data uncopied, and forgets all at reset", () => {
  const data = new Uint8Array(10_000).fill(1);
  const encoder = new FrameEncoder(0);
  encoder.entry({ type: 0, term: 1, index: 1, data });
  assert.ok(encoder.chunks().includes(data));
  for (let i = 0; i < 300; i++)
    encoder.entry({ type: 0, term: 1, index: 2 + i, data: data.subarray(0, 8000) });
  assert.ok(encoder.sizeBytes > 2 << 20);
  encoder.reset();
  assert.equal(encoder.sizeBytes, 0);
  assert.equal(concat(encoder.chunks()).length, 0);
});
