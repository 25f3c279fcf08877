/** The resources of the machine that this process may use. */
import { readFileSync, readlinkSync } from "node:fs";
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

/** The number by which the system knows the calling thread; undefined where it does not say. */
export function threadNumber(): number | undefined {
  try {
    return Number(readlinkSync("/proc/thread-self").split("/").at(-1));
  } catch {
    return undefined;
  }
}

/**
 * Milliseconds of processor time that a thread of this process has had; undefined where the system
 * does not say, or the thread has ended.
 */
export function threadProcessorMs(thread: number): number | undefined {
  try {
    const [nanoseconds] = readFileSync(`/proc/self/task/${thread}/schedstat`, "latin1").split(" ");
    return Number(nanoseconds) / 1e6;
  } catch {
    return undefined;
  }
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
