/**
 * The engine's layers under random and mutated input. A short run by default; `./dev fuzz rpc`
 * runs longer (QUORATE_FUZZ_MINUTES for each part). A failure names its case: QUORATE_FUZZ_SEED
 * runs that one alone.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, SeededRandom } from "@quorate/host";
import { fuzzCalls } from "./engine/fuzz-calls.ts";
import { fuzzChunks, fuzzConnection, fuzzNoise } from "./engine/fuzz-connection.ts";
import { fuzzGrpc } from "./engine/fuzz-grpc.ts";
import { fuzzHpack } from "./engine/fuzz-hpack.ts";
import { fuzzHttp1 } from "./engine/fuzz-http1.ts";

/** Cases of a short run: a second or two for each part. */
const PARTS: readonly (readonly [
  name: string,
  run: (random: Random) => void | Promise<void>,
  cases: number,
])[] = [
  ["HPACK", fuzzHpack, 600],
  ["noise", fuzzNoise, 1500],
  ["frames", fuzzConnection, 400],
  ["frames, cut at any place", fuzzChunks, 200],
  ["calls", fuzzCalls, 100],
  ["gRPC", fuzzGrpc, 200],
  ["HTTP/1.1", fuzzHttp1, 500],
];

/**
 * More than an engine that forgets what is over should ever add; the heap is looked at between two
 * thirds and the end of a long run.
 */
const MAX_GROWTH_BYTES = 64 * 1024 * 1024;

const minutes = Number(process.env["QUORATE_FUZZ_MINUTES"] ?? 0);
const only = process.env["QUORATE_FUZZ_SEED"];

for (const [name, run, cases] of PARTS) {
  test(name, async (t) => {
    const base =
      only === undefined ? (minutes > 0 ? BigInt(Date.now()) * 1_000_000n : 1n) : BigInt(only);
    const untilMs = performance.now() + minutes * 60_000;
    const settledMs = untilMs - minutes * 20_000;
    let settledBytes: number | undefined;
    let count = 0;
    for (
      ;
      only !== undefined ? count < 1 : minutes > 0 ? performance.now() < untilMs : count < cases;
      count++
    ) {
      const seed = base + BigInt(count);
      try {
        await run(new SeededRandom(seed));
      } catch (error) {
        throw new Error(`QUORATE_FUZZ_SEED=${seed} fails`, { cause: error });
      }
      if (minutes > 0 && settledBytes === undefined && performance.now() > settledMs)
        settledBytes = usedHeapBytes();
    }
    t.diagnostic(`${count} cases from seed ${base}`);
    if (settledBytes === undefined) return;
    const growthBytes = usedHeapBytes() - settledBytes;
    assert.ok(growthBytes < MAX_GROWTH_BYTES, `the heap has grown by ${growthBytes} bytes`);
  });
}

function usedHeapBytes(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
