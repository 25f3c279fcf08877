/**
 * Putting load on a cluster: many puts at once, at a given rate or as fast as they go, and what
 * they took.
 */
import { randomFillSync } from "node:crypto";
import type { Io } from "../io.ts";

/** What calls took. */
export interface LoadStats {
  readonly perSecond: number;
  /** In seconds; the standard deviation is NaN where no call succeeded. */
  readonly slowest: number;
  readonly deviation: number;
  /** How often each error came. */
  readonly errors: ReadonlyMap<string, number>;
}

/**
 * Sums up calls. @param latencies seconds of each that succeeded @param totalSeconds of the whole
 * load
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

/** When to send the next calls. */
export interface LoadPlan {
  /** Calls under way at the most. */
  readonly concurrency: number;
  /** Calls a second, or undefined for as many as there can be. */
  readonly perSecond: number | undefined;
  /** The load ends after so many seconds or calls. */
  readonly seconds: number | undefined;
  readonly calls: number | undefined;
}

/** A load at a rate looks so often whether calls are due. */
const TICK_MS = 2;
/**
 * What was missed longer ago than this is not made up for: the rate counts, not a burst after a
 * pause.
 */
const BURST_SECONDS = 0.1;
const NS_PER_SECOND = 1e9;

/**
 * Makes calls as planned, and resolves when the last has been answered.
 * @param call made again and again; what it rejects with is counted by its text
 * @param progress told of the calls that were answered and of the seconds since the beginning
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
    const underWay = new Set<Promise<void>>();
    let due = 0;
    let lastSeconds = 0;
    while (!isOver()) {
      const seconds = elapsed();
      due = Math.min(
        due + (seconds - lastSeconds) * plan.perSecond,
        Math.max(1, plan.perSecond * BURST_SECONDS),
      );
      lastSeconds = seconds;
      for (; due >= 1 && underWay.size < plan.concurrency; due--) {
        const one: Promise<void> = make().finally(() => underWay.delete(one));
        underWay.add(one);
      }
      await io.sleep(TICK_MS);
      progress(answered, elapsed());
    }
    await Promise.all(underWay);
  }
  return statsOf(latencies, errors, elapsed());
}

/** A key of this many bytes that no other is the same as. */
export function randomKey(sizeBytes: number): Uint8Array {
  const key = new Uint8Array(sizeBytes);
  randomFillSync(key, 0, 9);
  return key;
}
