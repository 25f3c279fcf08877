/** The resources of the machine that this process may use. */
import { readFileSync } from "node:fs";
import { totalmem } from "node:os";

/**
 * Memory in bytes: the limit of the process's cgroup (version 2 or 1, the lowest of all groups
 * around it) if below the machine's memory. File descriptors: the soft RLIMIT_NOFILE, which Node
 * raises to the hard one; 0 if unknown.
 */
export function machineLimits(): { readonly memoryBytes: number; readonly openFiles: number } {
  const total = totalmem();
  const constrained = process.constrainedMemory();
  return {
    memoryBytes: constrained > 0 && constrained < total ? constrained : total,
    openFiles: openFilesLimit(),
  };
}

function openFilesLimit(): number {
  try {
    return Number(
      /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? 0,
    );
  } catch {
    return 0;
  }
}
