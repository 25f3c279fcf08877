/**
 * Calls at a fixed rate, whatever the server does: a call's time counts from the moment at which it
 * was due, so a server that stands still for a while is late for all calls of that while.
 */
import type { Load } from "./load.ts";

export interface PacedResult {
  readonly answered: number;
  readonly failed: number;
  /** Calls that were due and found no idle client. */
  readonly missed: number;
  /** Latencies in milliseconds: the median, 99 %, 99.9 % and the longest. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly longestMs: number;
  /** The slowest calls, the longest first. */
  readonly slowest: readonly SlowCall[];
}

/** A call that took long, in milliseconds of the machine's monotonic clock. */
export interface SlowCall {
  readonly dueMs: number;
  /** When it was written to its connection. */
  readonly sentMs: number;
  readonly doneMs: number;
}

/** How many of the slowest calls a result has at most. */
const MAX_SLOWEST = 5000;

/**
 * Runs a load's calls at a rate.
 * @param load whose clients are as many as calls may be open
 */
export async function runPaced(
  load: Load,
  {
    ratePerS,
    warmUpMs,
    durationMs,
  }: Readonly<Record<"ratePerS" | "warmUpMs" | "durationMs", number>>,
): Promise<PacedResult> {
  const idle = Array.from({ length: load.clients }, (_, client) => client);
  const dueAt = new Float64Array(load.clients);
  const sentAt = new Float64Array(load.clients);
  const latencies: number[] = [];
  const slow = new SlowCalls();
  let failed = 0;
  let missed = 0;
  let startMs = 0;
  const isMeasured = (dueMs: number): boolean => dueMs >= startMs + warmUpMs;
  const done = (client: number, ok: boolean): void => {
    if (!ok) failed++;
    else if (isMeasured(dueAt[client])) {
      const doneMs = performance.now();
      latencies.push(doneMs - dueAt[client]);
      slow.add({ dueMs: dueAt[client], sentMs: sentAt[client], doneMs });
    }
    idle.push(client);
  };
  const { promise: broken, reject: breakOff } = Promise.withResolvers<never>();
  broken.catch(() => {});
  try {
    await Promise.race([load.open({ done, failed: breakOff }), broken]);
    startMs = performance.now();
    const endMs = startMs + warmUpMs + durationMs;
    const run = new Promise<void>((resolve) => {
      let next = 0;
      const turn = (): void => {
        const nowMs = performance.now();
        for (; startMs + (next * 1000) / ratePerS <= nowMs; next++) {
          const dueMs = startMs + (next * 1000) / ratePerS;
          const client = idle.pop();
          if (client === undefined) {
            if (isMeasured(dueMs)) missed++;
            continue;
          }
          dueAt[client] = dueMs;
          sentAt[client] = nowMs;
          load.start(client);
        }
        load.flush();
        if (nowMs < endMs) setTimeout(turn, 1);
        // What is open is waited for, for a while.
        else if (idle.length === load.clients || nowMs > endMs + 10_000) resolve();
        else setTimeout(turn, 10);
        if (nowMs >= endMs) next = Number.POSITIVE_INFINITY;
      };
      turn();
    });
    await Promise.race([run, broken]);
  } finally {
    load.close();
  }
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  const [p50Ms, p99Ms, p999Ms, longestMs] = [0.5, 0.99, 0.999, 1].map(at);
  const slowest = slow.slowest();
  return { answered: sorted.length, failed, missed, p50Ms, p99Ms, p999Ms, longestMs, slowest };
}

const tookMs = ({ dueMs, doneMs }: SlowCall): number => doneMs - dueMs;

/** Keeps the slowest calls of all. */
class SlowCalls {
  #calls: SlowCall[] = [];
  /** Quicker calls are not among the slowest. */
  #leastMs = 0;

  add(call: SlowCall): void {
    if (tookMs(call) <= this.#leastMs) return;
    this.#calls.push(call);
    if (this.#calls.length < 2 * MAX_SLOWEST) return;
    this.#shorten();
    this.#leastMs = tookMs(this.#calls.at(-1)!);
  }

  /** On the machine's clock. */
  slowest(): SlowCall[] {
    this.#shorten();
    const offsetMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
    return this.#calls.map(({ dueMs, sentMs, doneMs }) => ({
      dueMs: dueMs + offsetMs,
      sentMs: sentMs + offsetMs,
      doneMs: doneMs + offsetMs,
    }));
  }

  #shorten(): void {
    this.#calls = this.#calls.toSorted((a, b) => tookMs(b) - tookMs(a)).slice(0, MAX_SLOWEST);
  }
}
