/**
 * Generates load: concurrent calls at a given rate or as fast as possible, with their latencies.
 */
import { randomFillSync } from "node:crypto";
import type { Io } from "@quorate/cli";

/** Statistics of a load. */
export interface LoadStats {
  readonly perSecond: number;
  /** In seconds; the standard deviation is NaN where no call succeeded. */
  readonly slowest: number;
  readonly deviation: number;
  /** Count of each error text. */
  readonly errors: ReadonlyMap<string, number>;
}

/**
 * @param latencies seconds of each successful call
 * @param totalSeconds duration of the load
 */
export function statsOf(
  latencies: readonly number[],
  errors: ReadonlyMap<string, number>,
  totalSeconds: number,
): LoadStats {
  let sum = 0;
  let slowest = 0;
  for (const latency of latencies) {
    sum += latency;
    slowest = Math.max(slowest, latency);
  }
  const average = sum / latencies.length;
  let squares = 0;
  for (const latency of latencies) squares += (latency - average) ** 2;
  return {
    perSecond: latencies.length / totalSeconds,
    slowest,
    deviation: Math.sqrt(squares / latencies.length),
    errors,
  };
}

/** How many calls to make, and how fast. */
export interface LoadPlan {
  /** Most concurrent calls. */
  readonly concurrency: number;
  /** Calls a second; undefined for as many as possible. */
  readonly perSecond: number | undefined;
  /** The load ends after this many seconds, or after `calls` calls. */
  readonly seconds: number | undefined;
  readonly calls: number | undefined;
}

/** A load at a rate sends due calls at this interval. */
const TICK_MS = 2;
/**
 * The longest backlog of due calls: after a pause the load continues at its rate, without a burst.
 */
const BURST_SECONDS = 0.1;
const NS_PER_SECOND = 1e9;

/**
 * Makes the planned calls; resolves when the last one has ended.
 * @param call one call; errors are counted by text
 * @param progress called with the number of finished calls and the seconds since the start
 */
export async function runLoad(
  io: Io,
  plan: LoadPlan,
  stop: AbortSignal,
  call: () => Promise<unknown>,
  progress: (calls: number, seconds: number) => void,
): Promise<LoadStats> {
  const latencies: number[] = [];
  const errors = new Map<string, number>();
  const startNs = io.nowNs();
  const elapsed = (): number => Number(io.nowNs() - startNs) / NS_PER_SECOND;
  let sent = 0;
  let answered = 0;
  const make = async (): Promise<void> => {
    sent++;
    const beganNs = io.nowNs();
    try {
      await call();
      latencies.push(Number(io.nowNs() - beganNs) / NS_PER_SECOND);
    } catch (error) {
      const text = (error as Error).message;
      errors.set(text, (errors.get(text) ?? 0) + 1);
    }
    answered++;
    progress(answered, elapsed());
  };
  const isOver = (): boolean =>
    stop.aborted ||
    (plan.calls !== undefined && sent >= plan.calls) ||
    (plan.seconds !== undefined && elapsed() >= plan.seconds);
  if (plan.perSecond === undefined) {
    const worker = async (): Promise<void> => {
      while (!isOver()) await make();
    };
    await Promise.all(Array.from({ length: plan.concurrency }, worker));
  } else {
    const pending = new Set<Promise<void>>();
    let due = 0;
    let lastSeconds = 0;
    while (!isOver()) {
      const seconds = elapsed();
      due = Math.min(
        due + (seconds - lastSeconds) * plan.perSecond,
        Math.max(1, plan.perSecond * BURST_SECONDS),
      );
      lastSeconds = seconds;
      for (; due >= 1 && pending.size < plan.concurrency; due--) {
        const one: Promise<void> = make().finally(() => pending.delete(one));
        pending.add(one);
      }
      await io.sleep(TICK_MS);
      progress(answered, elapsed());
    }
    await Promise.all(pending);
  }
  return statsOf(latencies, errors, elapsed());
}

/** A unique key: 9 random bytes, then zeros. */
export function randomKey(sizeBytes: number): Uint8Array {
  const key = new Uint8Array(sizeBytes);
  randomFillSync(key, 0, 9);
  return key;
}
