/** Processor time of a process with all its threads, in nanoseconds' steps. */
import { readdirSync, readFileSync } from "node:fs";

/** Milliseconds since the start; threads that have ended are not counted. */
export function processorMs(pid: number): number {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      const text = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1");
      sum += Number(text.slice(0, text.indexOf(" ")));
    } catch {
      // It has ended meanwhile.
    }
  }
  return sum / 1e6;
}
