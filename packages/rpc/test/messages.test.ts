import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { heldBytes } from "../../../test/support/memory.ts";
import { MessageAssembler } from "../src/grpc/protocol.ts";
import { StatusError } from "../src/service.ts";

const SEED = 20_260_101;

/** The prefixed, uncompressed message. */
function joined(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

describe("gRPC messages", () => {
  it("come out as they went in, however the body is cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 40 }),
        (messages, cuts) => {
          const body = Buffer.concat(messages.map((message) => joined(message)));
          const assembler = new MessageAssembler(3000);
          const got: Buffer[] = [];
          for (let at = 0, i = 0; at < body.length; i++) {
            const size = cuts[i % cuts.length];
            assembler.push(body.subarray(at, at + size));
            at += size;
            for (let one = assembler.take(); one !== undefined; one = assembler.take())
              got.push(Buffer.from(one));
          }
          assert.deepEqual(
            got,
            messages.map((message) => Buffer.from(message)),
          );
          assert.equal(assembler.bufferedBytes, 0);
        },
      ),
      { seed: SEED, numRuns: 500 },
    );
  });

  it("are refused by their prefix when they are too long, before they are held", () => {
    const assembler = new MessageAssembler(10);
    assembler.push(Buffer.from([0, 0, 0, 0, 11]));
    assert.throws(
      () => assembler.take(),
      new StatusError(8, "grpc: received message larger than max (11 vs. 10)"),
    );
  });

  it("are refused when their flag is not known", () => {
    const assembler = new MessageAssembler(10);
    assembler.push(Buffer.from([2, 0, 0, 0, 1, 1]));
    assert.throws(
      () => assembler.take(),
      new StatusError(13, "grpc: received unexpected payload format 2"),
    );
  });

  it("do not cost an object a byte when they come byte by byte", async () => {
    const message = new Uint8Array(100_000).map((_, i) => i);
    const body = joined(message);
    const assembler = new MessageAssembler(100_000);
    const before = await heldBytes();
    for (let i = 0; i < body.length; i++) assembler.push(body.subarray(i, i + 1));
    const grown = (await heldBytes()) - before;
    assert.ok(grown < 10 * body.length, `${grown} bytes for ${body.length} chunks`);
    assert.deepEqual(Buffer.from(assembler.take()!), Buffer.from(message));
  });
});
