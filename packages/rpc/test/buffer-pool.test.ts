import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  BufferPool,
  MAX_AWAITED_BUFFERS,
  MAX_FREE_BYTES,
  Output,
  POOLED_BUFFER_BYTES,
} from "../src/http2/output.ts";

const PIECE = new Uint8Array(1000).fill(7);

function fill(out: Output, bytes: number): void {
  for (let sum = 0; sum < bytes; sum += PIECE.length) out.append(PIECE, 0, PIECE.length);
}

describe("the pool of output buffers", () => {
  it("reuses returned buffers, and keeps no more than its bound", () => {
    const pool = new BufferPool();
    const taken = Array.from({ length: (2 * MAX_FREE_BYTES) / POOLED_BUFFER_BYTES }, () =>
      pool.take(),
    );
    assert.ok(taken.every((buffer) => buffer.length === POOLED_BUFFER_BYTES));
    for (const buffer of taken) pool.give(buffer);
    assert.equal(pool.freeBytes, MAX_FREE_BYTES);
    assert.ok(taken.includes(pool.take()));
  });

  it("is not waited for by an output whose bytes are never all sent, as over TLS without a pause", () => {
    const pool = new BufferPool();
    const out = new Output(pool);
    for (let i = 0; i < 200; i++) {
      fill(out, POOLED_BUFFER_BYTES);
      out.take();
    }
    const most = (MAX_AWAITED_BUFFERS + 2) * POOLED_BUFFER_BYTES;
    assert.ok(most <= MAX_FREE_BYTES);
    out.recycle();
    assert.ok(pool.freeBytes > 0 && pool.freeBytes <= most, `${pool.freeBytes} bytes were held`);
  });

  it("gets an output's buffers when their bytes have been sent, and not before", () => {
    const pool = new BufferPool();
    const out = new Output(pool);
    fill(out, 300_000);
    const first = out.take();
    fill(out, 300_000);
    assert.equal(pool.freeBytes, 0, "the first bytes are on their way");
    const second = out.take();
    const held = new Set([...first, ...second].map((chunk) => chunk.buffer));
    fill(out, 1000);
    out.recycle();
    assert.ok(pool.freeBytes >= 500_000, `${pool.freeBytes} bytes are free again`);
    const before = Buffer.concat(out.take());
    assert.ok(
      before.every((byte) => byte === 7),
      "what was written meanwhile stays",
    );
    assert.ok(held.has(pool.take().buffer));
  });
});
