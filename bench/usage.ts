/**
 * What processes use, from /proc (Linux). Elsewhere the figures are NaN, and the table shows a
 * dash.
 */
import { readFileSync } from "node:fs";

/** Ticks a second of the times in /proc: 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** CPU seconds (user and system, all threads) that the processes have used in their lives. */
export function cpuSeconds(pids: readonly number[]): number {
  return sum(pids, (pid) => {
    // The name in brackets may hold blanks; utime and stime are the 12th and 13th fields after it.
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  });
}

/** CPU seconds that the processes' main threads have used in their lives. */
export function mainThreadSeconds(pids: readonly number[]): number {
  return sum(pids, (pid) => {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "latin1").split(" ");
    return Number(nanoseconds) / 1e9;
  });
}

/** Resident memory of the processes, bytes. */
export function residentBytes(pids: readonly number[]): number {
  return sum(pids, (pid) => statusBytes(pid, "VmRSS"));
}

/** The most resident memory that each process has had, summed, bytes. */
export function peakResidentBytes(pids: readonly number[]): number {
  return sum(pids, (pid) => statusBytes(pid, "VmHWM"));
}

function statusBytes(pid: number, name: string): number {
  const line = readFileSync(`/proc/${pid}/status`, "latin1")
    .split("\n")
    .find((one) => one.startsWith(`${name}:`))!;
  return Number.parseInt(line.slice(name.length + 1), 10) * 1024;
}

function sum(pids: readonly number[], read: (pid: number) => number): number {
  try {
    return pids.reduce((total, pid) => total + read(pid), 0);
  } catch {
    return Number.NaN;
  }
}
