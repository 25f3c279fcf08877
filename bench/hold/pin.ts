/** For measurements of processor time. */
import { spawnSync } from "node:child_process";

/**
 * Keeps a process's main thread on one processor: the clocks of processors differ, so that a thread
 * which moves between them many times is counted too much processor time. False where the program
 * taskset is missing.
 */
export function pinToOneProcessor(pid: number): boolean {
  return spawnSync("taskset", ["-p", "-c", "0", String(pid)]).status === 0;
}
