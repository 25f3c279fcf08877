/** Snappy's elements in random order, against a decoder that copies byte by byte. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { uncompress } from "../src/level-files/snappy.ts";

const LIMIT = 1 << 20;

/** Elements and what they stand for. */
class Content {
  readonly plain: number[] = [];
  readonly elements: number[] = [];

  literal(bytes: readonly number[]): void {
    this.elements.push((bytes.length - 1) << 2, ...bytes);
    this.plain.push(...bytes);
  }

  /** A copy with an offset of two bytes. */
  copy(back: number, size: number): void {
    this.elements.push(((size - 1) << 2) | 2, back & 255, back >>> 8);
    for (let i = 0; i < size; i++) this.plain.push(this.plain[this.plain.length - back]);
  }

  /** One with an offset of a byte and three bits. */
  shortCopy(back: number, size: number): void {
    this.elements.push(((size - 4) << 2) | 1 | ((back >>> 8) << 5), back & 255);
    for (let i = 0; i < size; i++) this.plain.push(this.plain[this.plain.length - back]);
  }

  /** As stored: the length, then the elements. */
  get bytes(): Uint8Array {
    const length = this.plain.length;
    const varint = [(length & 127) | 128, ((length >>> 7) & 127) | 128, length >>> 14];
    return Uint8Array.from([...varint, ...this.elements]);
  }
}

test("literals and copies, long ones in pieces of one distance, are what byte by byte makes of them", () => {
  const random = new SeededRandom(16n);
  for (let round = 0; round < 500; round++) {
    const content = new Content();
    content.literal(Array.from({ length: 1 + random.below(60) }, () => random.below(256)));
    for (let step = random.below(20); step > 0; step--) {
      const most = content.plain.length;
      const choice = random.below(4);
      const back = 1 + random.below(Math.min(most, 2047));
      if (choice === 0)
        content.literal(Array.from({ length: 1 + random.below(60) }, () => random.below(256)));
      else if (choice === 1) content.shortCopy(back, 4 + random.below(8));
      else {
        for (let pieces = 1 + random.below(5); pieces > 0; pieces--)
          content.copy(back, random.below(3) === 0 ? 1 + random.below(64) : 64);
      }
    }
    assert.deepEqual([...uncompress(content.bytes, LIMIT)!], content.plain, `round ${round}`);
  }
});

test("a copy from before the beginning, and one beyond the length, are refused", () => {
  const content = new Content();
  content.literal([1, 2, 3]);
  content.elements.push(((64 - 1) << 2) | 2, 4, 0);
  assert.equal(uncompress(content.bytes, LIMIT), undefined);
  const long = new Content();
  long.literal(Array.from({ length: 60 }, (_, i) => i));
  for (let i = 0; i < 4; i++) long.copy(60, 10);
  long.plain.length -= 5;
  assert.equal(uncompress(long.bytes, LIMIT), undefined);
});
