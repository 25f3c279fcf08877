/**
 * Loaded into a member (node --import): measures how long each turn of its event loop takes, and
 * reports the longest one since the last request to each client of the socket
 * QUORATE_BENCH_HOLD_SOCKET: wall-clock milliseconds, the longest pause for the collection of
 * garbage and, with QUORATE_BENCH_HOLD_SPIN, milliseconds of processor time of the member's main
 * thread, which other programs on the machine do not change. For that the loop never sleeps, so the
 * member takes a whole processor.
 */
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const path = process.env["QUORATE_BENCH_HOLD_SOCKET"];
if (path !== undefined && isMainThread) {
  const turns = monitorEventLoopDelay({ samplePerIteration: true, resolution: 100 });
  turns.enable();
  let longestCpuMs = Number.NaN;
  let longestPauseMs = 0;
  const pauses = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries())
      longestPauseMs = Math.max(longestPauseMs, duration);
  });
  pauses.observe({ type: "gc" });
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`${turns.count === 0 ? 0 : turns.max / 1e6} ${longestCpuMs} ${longestPauseMs}`);
    turns.reset();
    longestPauseMs = 0;
    if (!Number.isNaN(longestCpuMs)) longestCpuMs = 0;
  });
  server.on("error", () => {});
  // The launcher replaces its process by the member, and leaves a socket of its own there.
  rmSync(path, { force: true });
  server.listen(path).unref();
  if (process.env["QUORATE_BENCH_HOLD_SPIN"] !== undefined) {
    const cpuMs = (): number => {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1000;
    };
    longestCpuMs = 0;
    let before = cpuMs();
    const turn = (): void => {
      const now = cpuMs();
      longestCpuMs = Math.max(longestCpuMs, now - before);
      before = now;
      setImmediate(turn).unref();
    };
    setImmediate(turn).unref();
  }
}
