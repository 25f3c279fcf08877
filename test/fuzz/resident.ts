/** The resident memory of a process. */
import { readFileSync } from "node:fs";

/** In MiB; 0 for a process that has ended. */
export function residentMib(pid: number): number {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Math.round(Number(kib ?? 0) / 1024);
  } catch {
    return 0;
  }
}
