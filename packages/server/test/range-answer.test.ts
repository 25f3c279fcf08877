/** A range's answer in pieces is the same bytes as the codec's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RangeResponse } from "@quorate/proto";
import fc from "fast-check";
import { encodeRange, MIN_PIECES_BYTES } from "../src/services/range-answer.ts";

test("whatever the records' sizes, the bytes are the codec's", () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constantFrom(127, 128, 16_383, 16_384, 40_000)), { maxLength: 40 });
  fc.assert(
    fc.property(sizes, fc.boolean(), fc.nat(), (lengths, more, count) => {
      const kvs = lengths.map((length, i) => new Uint8Array(length).fill(i));
      const response = RangeResponse.create({ header: { clusterId: 1n, memberId: 2n, revision: 3, raftTerm: 4 }, kvs, more, count });
      const message = encodeRange(response);
      const total = lengths.reduce((sum, length) => sum + length, 0);
      assert.equal(message instanceof Uint8Array, total < MIN_PIECES_BYTES);
      const bytes = message instanceof Uint8Array ? message : Buffer.concat(message);
      assert.deepEqual(Buffer.from(bytes), Buffer.from(RangeResponse.encode(response)));
      if (!(message instanceof Uint8Array))
        for (const kv of kvs) assert.ok(kv.length === 0 || message.includes(kv), "a record is not copied");
    }),
    { seed: 20_260_106 },
  );
});
