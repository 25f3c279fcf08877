/**
 * HPACK under random and mutated blocks: an error or fields, never anything else, and a table
 * within its bound.
 */
import assert from "node:assert/strict";
import type { Random } from "@quorate/host";
import { HpackError } from "../../src/hpack/errors.ts";
import {
  type EncodableField,
  HpackDecoder,
  HpackEncoder,
  Indexing,
} from "../../src/hpack/hpack.ts";

const NAMES = [
  ":method",
  ":path",
  ":authority",
  "content-type",
  "grpc-timeout",
  "te",
  "x-random-name",
  "authorization",
];
const INDEXINGS = [Indexing.Add, Indexing.None, Indexing.Never];
const TABLE_BYTES = 4096;
const LIST_BYTES = 16_384;

export function randomBytes(random: Random, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.below(256));
}

/** Flips, cuts, doubles or overwrites some of the bytes. */
export function mutate(random: Random, bytes: Uint8Array): Uint8Array {
  let result = new Uint8Array(bytes);
  for (let changes = 1 + random.below(4); changes > 0 && result.length > 0; changes--) {
    const at = random.below(result.length);
    switch (random.below(5)) {
      case 0:
        result[at] ^= 1 << random.below(8);
        break;
      case 1:
        result[at] = random.below(256);
        break;
      case 2:
        result[at] = [0, 0x7f, 0x80, 0xff][random.below(4)];
        break;
      case 3:
        result = result.slice(0, at);
        break;
      default: {
        const end = Math.min(result.length, at + 1 + random.below(20));
        result = Uint8Array.from([...result.subarray(0, end), ...result.subarray(at)]);
      }
    }
  }
  return result;
}

function randomFields(random: Random): EncodableField[] {
  return Array.from({ length: random.below(12) }, () => ({
    name: NAMES[random.below(NAMES.length)],
    value: String.fromCharCode(
      ...randomBytes(random, random.below(random.below(8) === 0 ? 3000 : 20)),
    ),
    indexing: INDEXINGS[random.below(3)],
  }));
}

/**
 * One connection's life of blocks: good ones until the first that is not, which may do nothing but
 * throw.
 */
export function fuzzHpack(random: Random): void {
  const encoder = new HpackEncoder(random.below(3) === 0 ? random.below(600) : TABLE_BYTES);
  const decoder = new HpackDecoder(TABLE_BYTES, LIST_BYTES);
  for (let blocks = random.below(30); blocks >= 0; blocks--) {
    if (random.below(4) === 0) encoder.limitTable(random.below(5000));
    const fields = randomFields(random);
    const good = encoder.encode(fields);
    const kind = random.below(10);
    const block =
      kind === 0
        ? randomBytes(random, random.below(300))
        : kind === 1
          ? mutate(random, good)
          : good;
    let decoded: { name: string; value: string }[];
    try {
      decoded = decoder.decode(block, 0, block.length);
    } catch (error) {
      assert.ok(error instanceof HpackError, String(error));
      assert.notEqual(block, good, "a good block was refused");
      return;
    }
    assert.ok(decoder.tableBytes <= TABLE_BYTES);
    assert.ok(
      decoded.reduce((sum, { name, value }) => sum + name.length + value.length + 32, 0) <=
        LIST_BYTES,
    );
    if (block !== good) return;
    const expected = fields.map(({ name, value }) => [name, value]);
    const actual = decoded.map(({ name, value }) => [name, value]);
    assert.deepEqual(actual, decoder.truncated ? expected.slice(0, actual.length) : expected);
  }
}
