/** check perf: puts at a fixed rate, to see whether the cluster keeps up. */
import { performance } from "node:perf_hooks";
import type { Invocation } from "@quorate/cli";
import { Exit, ExitCode, type Io, Progress } from "@quorate/cli";
import { type LoadStats, randomKey, runLoad } from "./load.ts";
import type { PerfModel } from "./models.ts";
import { CheckTarget } from "./target.ts";

const KEY_BYTES = 256;
const VALUE_BYTES = 1024;

/** Above this share of one processor's time, this program may be the bottleneck. */
const BUSY = 0.9;

/** The report of a load, with etcdctl's texts, and whether it passes. */
export function judge(
  { perSecond, slowest, deviation, errors }: LoadStats,
  wantedPerSecond: number,
): { text: string; passes: boolean } {
  const lines: string[] = [];
  let passes = true;
  const fail = (line: string): void => {
    lines.push(line);
    passes = false;
  };
  if (errors.size > 0) {
    fail("FAIL: too many errors");
    for (const [text, count] of errors) lines.push(`FAIL: ERROR(${text}) -> ${count}`);
  }
  const writes = Math.trunc(perSecond) + 1;
  if (perSecond / wantedPerSecond <= 0.9) fail(`FAIL: Throughput too low: ${writes} writes/s`);
  else lines.push(`PASS: Throughput is ${writes} writes/s`);
  if (slowest > 0.5) fail(`Slowest request took too long: ${slowest.toFixed(6)}s`);
  else lines.push(`PASS: Slowest request took ${slowest.toFixed(6)}s`);
  if (deviation > 0.1) fail(`Stddev too high: ${deviation.toFixed(6)}s`);
  else lines.push(`PASS: Stddev is ${deviation.toFixed(6)}s`);
  lines.push(passes ? "PASS" : "FAIL");
  return { text: lines.map((line) => `${line}\n`).join(""), passes };
}

/** Deletes the keys of the check. Returns the revision, or undefined where that failed. */
async function cleanUp(target: CheckTarget, io: Io): Promise<number | undefined> {
  try {
    return await target.deleteAll();
  } catch (error) {
    io.stdout(`FAIL: Cleanup failed during key deletion: ERROR(${(error as Error).message})\n`);
    return undefined;
  }
}

/** Runs the check. Throws Exit if the cluster does not pass. */
export async function checkPerf(
  invocation: Invocation,
  prefix: string,
  model: PerfModel,
): Promise<void> {
  const { io } = invocation;
  const target = await CheckTarget.open(invocation, prefix);
  const stop = new AbortController();
  const forget = io.onStop(() => stop.abort());
  const progress = new Progress(io, "checking");
  try {
    await target.requireEmpty((text) => `'${text}'`);
    const value = new Uint8Array(VALUE_BYTES);
    const before = performance.eventLoopUtilization();
    const plan = {
      concurrency: model.clients,
      perSecond: model.perSecond,
      seconds: model.seconds,
      calls: undefined,
    };
    const stats = await runLoad(
      io,
      plan,
      stop.signal,
      () => target.put(randomKey(KEY_BYTES), value),
      (_calls, seconds) =>
        progress.update(Math.min(seconds, model.seconds), model.seconds, `${model.seconds} s`),
    );
    progress.end();
    const { utilization } = performance.eventLoopUtilization(before);
    await target.tidy(await cleanUp(target, io));
    const { text, passes } = judge(stats, model.perSecond);
    if (!passes && utilization > BUSY) {
      io.stderr(
        `Warning: this program was busy ${Math.round(utilization * 100)}% of the time, so it may be the bottleneck ` +
          "instead of the cluster; " +
          "run it on a faster or less busy machine\n",
      );
    }
    io.stdout(text);
    if (!passes) throw new Exit(ExitCode.error, "");
  } finally {
    progress.end();
    forget();
    target.close();
  }
}
