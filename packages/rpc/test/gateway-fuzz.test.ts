/**
 * The gateway and its JSON under random and mutated input, cut anywhere. A short run by default;
 * `./dev fuzz gateway` runs for QUORATE_FUZZ_MINUTES. A failure names its case: QUORATE_FUZZ_SEED
 * runs that one alone.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, SeededRandom } from "@quorate/host";
import { fuzzGatewayCall } from "./gateway/fuzz-calls.ts";
import { fuzzJson } from "./gateway/fuzz-json.ts";
import { fuzzSocket } from "./gateway/fuzz-socket.ts";

const PARTS: readonly (readonly [name: string, run: (random: Random) => void, weight: number])[] = [
  ["JSON", fuzzJson, 2],
  ["calls", fuzzGatewayCall, 3],
  ["WebSockets", fuzzSocket, 1],
];
/** Cases of a short run: about a second. */
const SHORT_CASES = 1200;
/** Cases between two looks at the clock. */
const BATCH = 50;
const MAX_GROWTH_BYTES = 64 * 1024 * 1024;

const minutes = Number(process.env["QUORATE_FUZZ_MINUTES"] ?? 0);
const only = process.env["QUORATE_FUZZ_SEED"];

test("random requests to the gateway", async (t) => {
  const long = BigInt(Date.now()) * 1_000_000n;
  const base = only === undefined ? (minutes > 0 ? long : 1n) : BigInt(only);
  const cases = only === undefined ? SHORT_CASES : 1;
  const untilMs = performance.now() + minutes * 60_000;
  const settledMs = untilMs - minutes * 20_000;
  const counts = new Map<string, number>();
  let settledBytes: number | undefined;
  let count = 0;
  const isDone = (): boolean => {
    if (only !== undefined || minutes === 0) return count >= cases;
    return count % BATCH === 0 && performance.now() >= untilMs;
  };
  for (; !isDone(); count++) {
    const seed = base + BigInt(count);
    const random = new SeededRandom(seed);
    const [name, run] = partOf(random);
    try {
      run(random);
    } catch (error) {
      throw new Error(`QUORATE_FUZZ_SEED=${seed} fails (${name})`, { cause: error });
    }
    counts.set(name, (counts.get(name) ?? 0) + 1);
    // What handlers have promised goes on only in another turn.
    if (count % BATCH === 0) await new Promise(setImmediate);
    if (minutes > 0 && settledBytes === undefined && performance.now() > settledMs)
      settledBytes = usedHeapBytes();
  }
  t.diagnostic(`from seed ${base}: ${[...counts].map(([name, n]) => `${name} ${n}`).join(", ")}`);
  if (settledBytes === undefined) return;
  const growthBytes = usedHeapBytes() - settledBytes;
  assert.ok(growthBytes < MAX_GROWTH_BYTES, `the heap has grown by ${growthBytes} bytes`);
});

function partOf(random: Random): (typeof PARTS)[number] {
  const total = PARTS.reduce((sum, [, , weight]) => sum + weight, 0);
  let at = random.below(total);
  return PARTS.find(([, , weight]) => (at -= weight) < 0)!;
}

function usedHeapBytes(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
