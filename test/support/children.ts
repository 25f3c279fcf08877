/**
 * Processes that must not outlive this one, however it ends: one that inherits an output of a test
 * file keeps the whole run from ending, for the runner waits until that output is closed.
 */
import type { ChildProcess } from "node:child_process";
import type { TestContext } from "node:test";

/** Each with what is killed: its id, or the negative one of its group. */
const alive = new Map<ChildProcess, number>();

function killAll(): void {
  for (const target of alive.values()) {
    try {
      process.kill(target, "SIGKILL");
    } catch {
      // It has just ended.
    }
  }
}

process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    killAll();
    process.exit(128 + (signal === "SIGTERM" ? 15 : signal === "SIGINT" ? 2 : 1));
  });
}

/**
 * Kills a child, or the process group that it leads, with kill -9 when this process ends and it
 * still runs.
 */
export function endsWithUs(child: ChildProcess, isGroup = false): void {
  if (child.pid === undefined) return;
  alive.set(child, isGroup ? -child.pid : child.pid);
  child.once("exit", () => alive.delete(child));
}

/** The same, and the child ends with the test, if one is passed. Returns the child. */
export function endsWith<T extends ChildProcess>(child: T, t?: TestContext): T {
  endsWithUs(child);
  t?.after(() => child.kill("SIGKILL"));
  return child;
}
