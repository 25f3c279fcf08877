/** The ring: random records over its end, a full ring, and memory that no writer has made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { equals } from "@quorate/proto";
import {
  MAX_PIECE_BYTES,
  RECORD_BYTES,
  RingError,
  RingReader,
  RingWriter,
  ringMemory,
} from "../src/ring.ts";

const SMALL_RING_BYTES = 128 * 1024;

interface Sent {
  readonly head: readonly number[];
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

function randomBytes(random: SeededRandom, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, () => random.below(256));
}

/** Mostly short ones, some of the longest. */
function randomSize(random: SeededRandom): number {
  return random.below(10) === 0 ? random.below(MAX_PIECE_BYTES + 1) : random.below(100);
}

test("records come out as they went in, in order, over the end of the ring and when it is full", () => {
  const random = new SeededRandom(7n);
  let fullTimes = 0;
  let woken = 0;
  for (let round = 0; round < 15; round++) {
    const memory = ringMemory(SMALL_RING_BYTES);
    const writer = new RingWriter(memory);
    const reader = new RingReader(memory);
    const expected: Sent[] = [];
    let isAsleep = reader.sleep();
    for (let step = 0; step < 400; step++) {
      if (random.below(3) > 0) {
        const bytes = randomBytes(random, randomSize(random));
        const isLast = random.below(4) > 0;
        const [kind, detail] = [random.below(256), random.below(65_536)];
        const [call, value, timeMs] = [random.uint32(), random.uint32(), random.unit() * 1e9];
        const cut = random.below(bytes.length + 1);
        const payload =
          random.below(2) === 0 ? bytes : [bytes.subarray(0, cut), bytes.subarray(cut)];
        const head = { kind, detail, call, value, timeMs };
        if (writer.write(head, payload, bytes.length, isLast))
          expected.push({ head: [kind, detail, call, value, timeMs], bytes, isLast });
        else fullTimes++;
      } else if (writer.publish()) {
        assert.ok(isAsleep, "only a reader that sleeps is woken");
        isAsleep = false;
        woken++;
      }
      if (random.below(40) > 0) continue;
      const records: { record: Sent; payload: Uint8Array }[] = [];
      while (reader.readBatch())
        while (reader.next()) {
          const { kind, detail, call, value, timeMs, isLast, payload } = reader;
          const record = {
            head: [kind, detail, call, value, timeMs],
            bytes: payload.slice(),
            isLast,
          };
          records.push({ record, payload });
        }
      // What was handed on stays as it is while the writer goes on.
      for (const { record, payload } of records) {
        const { head, bytes, isLast } = expected.shift()!;
        assert.deepEqual([record.head, record.isLast], [head, isLast]);
        assert.ok(equals(record.bytes, bytes) && equals(payload, bytes));
      }
      isAsleep = reader.sleep();
    }
  }
  assert.ok(woken > 50 && fullTimes > 50, `woken ${woken} times, full ${fullTimes} times`);
});

test("a writer that found no space is woken when the reader has taken something, once", () => {
  const memory = ringMemory(SMALL_RING_BYTES);
  const writer = new RingWriter(memory);
  const reader = new RingReader(memory);
  const head = { kind: 1, detail: 0, call: 0, value: 0, timeMs: 0 };
  const payload = new Uint8Array(MAX_PIECE_BYTES);
  const write = () => writer.write(head, payload, payload.length, true);
  let written = 0;
  while (write()) written++;
  assert.equal(written, Math.floor(SMALL_RING_BYTES / (RECORD_BYTES + MAX_PIECE_BYTES)));
  writer.publish();
  assert.ok(reader.readBatch());
  assert.ok(reader.takesFromFull());
  assert.ok(!reader.takesFromFull());
  assert.ok(write());
});

test("whatever is in the memory, the reader returns records within it or throws RingError", () => {
  const random = new SeededRandom(11n);
  let thrown = 0;
  for (let round = 0; round < 300; round++) {
    const memory = ringMemory(SMALL_RING_BYTES);
    const writer = new RingWriter(memory);
    const reader = new RingReader(memory);
    for (let i = random.below(6); i >= 0; i--) {
      const bytes = randomBytes(random, random.below(300));
      writer.write({ kind: 1, detail: 2, call: 3, value: 4, timeMs: 5 }, bytes, bytes.length, true);
    }
    writer.publish();
    const words = new Int32Array(memory);
    // Of the counters, the heads of records, or anywhere.
    const region = random.below(3);
    const word =
      region === 0
        ? 16 * random.below(4)
        : region === 1
          ? 64 + random.below(20)
          : random.below(words.length);
    words[word] = random.below(2) === 0 ? random.uint32() | 0 : random.below(1 << 20);
    try {
      while (reader.readBatch())
        while (reader.next()) {
          assert.ok(reader.payload.length <= MAX_PIECE_BYTES);
          assert.ok(reader.kind <= 255 && reader.detail <= 65_535);
          assert.ok(reader.call >= 0 && reader.value >= 0);
        }
    } catch (error) {
      assert.ok(error instanceof RingError, String(error));
      thrown++;
    }
  }
  assert.ok(thrown > 20, `only ${thrown} of 300 were broken enough`);
});

test("a reader that claims to have taken more than there was ends the writer", () => {
  const memory = ringMemory(SMALL_RING_BYTES);
  const writer = new RingWriter(memory);
  const payload = new Uint8Array(MAX_PIECE_BYTES);
  const head = { kind: 1, detail: 0, call: 0, value: 0, timeMs: 0 };
  new Int32Array(memory)[16] = 4096;
  assert.throws(() => {
    while (writer.write(head, payload, payload.length, true));
  }, RingError);
});
