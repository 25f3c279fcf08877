/** A range's answer that is encoded record by record is the same bytes as the codec's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RangeResponse, type ResponseHeader, TxnResponse } from "@quorate/proto";
import { joinMessage, type PieceSource } from "@quorate/rpc";
import fc from "fast-check";
import { encodeReadTxn, MIN_PIECES_BYTES, messageOf, RangeWriter } from "../src/v3/range-answer.ts";

const sizes = fc.array(
  fc.oneof(
    fc.integer({ min: 0, max: 300 }),
    fc.constantFrom(127, 128, 511, 512, 16_383, 16_384, 70_000),
  ),
  {
    maxLength: 40,
  },
);
const header: ResponseHeader = { clusterId: 1n, memberId: 2n, revision: 3, raftTerm: 4 };
const recordsOf = (lengths: readonly number[]): Uint8Array[] =>
  lengths.map((length, i) => new Uint8Array(length).fill(i));
const piecesOf = (source: PieceSource): Uint8Array[] => {
  const pieces: Uint8Array[] = [];
  for (let piece = source.next(); piece !== undefined; piece = source.next()) pieces.push(piece);
  return pieces;
};

function writerOf(kvs: readonly Uint8Array[], charge?: (bytes: number) => void): RangeWriter {
  const writer = new RangeWriter(charge);
  for (const kv of kvs) writer.push(kv);
  return writer;
}

test("whatever the records' sizes, the bytes are the codec's, and all memory is charged", () => {
  fc.assert(
    fc.property(sizes, fc.boolean(), fc.nat(), (lengths, more, count) => {
      const kvs = recordsOf(lengths);
      let charged = 0;
      const answer = writerOf(kvs, (bytes) => {
        charged += bytes;
      }).finish(header, { more, count });
      const expected = RangeResponse.encode(RangeResponse.create({ header, kvs, more, count }));
      assert.equal(answer.sizeBytes, expected.length);
      const message = messageOf(answer);
      assert.equal(message instanceof Uint8Array, expected.length < MIN_PIECES_BYTES);
      assert.ok(charged >= lengths.reduce((sum, length) => sum + length, 0));
      const pieces = message instanceof Uint8Array ? [message] : piecesOf(answer);
      assert.deepEqual(Buffer.concat(pieces), Buffer.from(expected));
      if (message instanceof Uint8Array) return;
      for (const kv of kvs)
        assert.ok(kv.length < 512 || pieces.includes(kv), "a large record is not copied");
      assert.ok(pieces.every((piece) => piece.length <= 64 << 10 || kvs.includes(piece)));
    }),
    { seed: 20_260_106 },
  );
});

test("the answer to a transaction that reads is the codec's", () => {
  fc.assert(
    fc.property(fc.array(sizes, { maxLength: 4 }), fc.boolean(), (lists, succeeded) => {
      const ranges = lists.map((lengths, i) => ({
        summary: { revision: 7, more: i % 2 === 0, count: i * 1000 },
        kvs: recordsOf(lengths),
      }));
      const answer = {
        revision: 3,
        succeeded,
        ranges: ranges.map(({ summary, kvs }) => ({ summary, records: writerOf(kvs) })),
      };
      const inner: ResponseHeader = { clusterId: 0n, memberId: 0n, revision: 7, raftTerm: 0 };
      const expected = TxnResponse.encode({
        header,
        succeeded,
        responses: ranges.map(({ summary: { more, count }, kvs }) => ({
          response: { case: "responseRange", value: { header: inner, kvs, more, count } },
        })),
      });
      const encoded = encodeReadTxn(answer, () => header);
      assert.equal(encoded.sizeBytes, expected.length);
      assert.deepEqual(joinMessage(messageOf(encoded)), Uint8Array.from(expected));
    }),
    { seed: 20_260_107 },
  );
});
