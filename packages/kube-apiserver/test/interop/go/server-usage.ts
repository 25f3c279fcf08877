/** What the servers of a suite use, by /proc (Linux): what a program of Go's tests starts. */
import { readdirSync, readFileSync } from "node:fs";

export interface ServerUsage {
  /** From the start of the first server to the end of the last. */
  readonly wallMs: number;
  /** Of all servers, user and system. */
  readonly processorMs: number;
  /** The most that they took at a time; shared pages count by their share. */
  readonly peakBytes: number;
}

const SAMPLE_MS = 50;
const MEMORY_EVERY = 5;
/** Of USER_HZ, which Linux has for all programs. */
const TICK_MS = 10;

/** Begins to sample. */
export function measureServers(): { stop(): ServerUsage } {
  const usedMs = new Map<number, number>();
  let peakBytes = 0;
  let firstMs = Infinity;
  let lastMs = 0;
  let samples = 0;
  const sample = (): void => {
    const pids = servers();
    if (pids.length === 0) return;
    lastMs = performance.now();
    firstMs = Math.min(firstMs, lastMs);
    for (const { pid, processorMs } of pids) usedMs.set(pid, processorMs);
    if (samples++ % MEMORY_EVERY !== 0) return;
    peakBytes = Math.max(
      peakBytes,
      pids.reduce((sum, { pid }) => sum + memoryOf(pid), 0),
    );
  };
  const timer = setInterval(sample, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      const processorMs = [...usedMs.values()].reduce((sum, ms) => sum + ms, 0);
      return { wallMs: lastMs - firstMs, processorMs, peakBytes };
    },
  };
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** A program of `go test`. */
  readonly isTest: boolean;
  readonly processorMs: number;
}

function servers(): Process[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => processOf(Number(name)));
  const tests = new Set(all.filter(({ isTest }) => isTest).map(({ pid }) => pid));
  const found = new Set(all.filter(({ parent }) => tests.has(parent)).map(({ pid }) => pid));
  // A child has a higher number, but for one after the numbers began again.
  for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  return all.filter(({ pid }) => found.has(pid));
}

function processOf(pid: number): Process[] {
  const text = textOf(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [parent, user, system] = [fields[1], fields[11], fields[12]].map(Number);
  if (parent === undefined || user === undefined || system === undefined) return [];
  const isTest = text.includes(".test)");
  return [{ pid, parent, isTest, processorMs: (user + system) * TICK_MS }];
}

function memoryOf(pid: number): number {
  const kib = /^Pss:\s+(\d+) kB/m.exec(textOf(`/proc/${pid}/smaps_rollup`))?.[1];
  return Number(kib ?? 0) * 1024;
}

/** "" where the process has ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
