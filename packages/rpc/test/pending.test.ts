/** What waits on a stream leaves in order, however it is cut into pieces and frames. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Output } from "../src/http2/output.ts";
import { PendingSend } from "../src/http2/stream.ts";
import { joinMessage, messageSize, type PieceSource } from "../src/service.ts";

/** A source that makes pieces of these lengths, all of one value; `made` counts them. */
function sourceOf(lengths: readonly number[], value: number): PieceSource & { made: number } {
  return {
    sizeBytes: lengths.reduce((sum, length) => sum + length, 0),
    made: 0,
    next() {
      return this.made < lengths.length
        ? new Uint8Array(lengths[this.made++]).fill(value)
        : undefined;
    },
  };
}

const lengths = fc.array(fc.constantFrom(0, 0, 1, 5, 700, 4096, 9000), { maxLength: 6 });

test("pieces and sources of pieces leave in the order in which they were given", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), lengths), { minLength: 1, maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 8000 }), { minLength: 1, maxLength: 20 }),
      (parts, cuts) => {
        const makeAll = () =>
          parts.map(([isSource, sizes], i) => {
            const source = sourceOf(sizes, i + 1);
            return isSource ? source : joinMessage(source);
          });
        const pending = new PendingSend();
        const [first, ...rest] = makeAll();
        pending.push([first], messageSize(first));
        const out = new Output();
        const sent: Uint8Array[] = [];
        for (let i = 0; rest.length > 0 || pending.sizeBytes > 0; i++) {
          const next = rest.shift();
          if (next !== undefined) pending.push([next], messageSize(next));
          if (pending.sizeBytes === 0) continue;
          pending.moveTo(out, Math.min(pending.sizeBytes, cuts[i % cuts.length]));
          for (const chunk of out.take()) sent.push(Uint8Array.from(chunk));
          out.recycle();
        }
        const expected = makeAll().map((part) => joinMessage(part));
        assert.deepEqual(Buffer.concat(sent), Buffer.concat(expected));
      },
    ),
    { seed: 20_261_122 },
  );
});

test("a source makes no piece before its bytes may leave", () => {
  const source = sourceOf(new Array<number>(100).fill(1000), 7);
  const pending = new PendingSend();
  pending.push([new Uint8Array(5), source], 100_005);
  const out = new Output();
  pending.moveTo(out, 10_005);
  assert.equal(source.made, 10);
  pending.moveTo(out, 500);
  pending.moveTo(out, 500);
  assert.equal(source.made, 11);
  pending.moveTo(out, pending.sizeBytes);
  assert.equal(source.made, 100);
  assert.equal(out.sizeBytes, 100_005);
});
