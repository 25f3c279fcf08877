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

/** Without the pages of files, which the system takes back when it needs them; in MiB. */
export function anonymousMib(pid: number): number {
  const [, kib] = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Math.round(Number(kib ?? 0) / 1024);
}
