/**
 * Loaded into a member (node --import): measures how long each turn of its event loop takes, and reports the longest one since the last
 * question to whoever connects to the socket QUORATE_BENCH_HOLD_SOCKET.
 */
import { createServer } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const path = process.env["QUORATE_BENCH_HOLD_SOCKET"];
// The launcher inherits the option too; it is not the member.
if (path !== undefined && isMainThread && process.argv[1]?.endsWith("main.ts")) {
  const turns = monitorEventLoopDelay({ samplePerIteration: true, resolution: 100 });
  turns.enable();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(String(turns.count === 0 ? 0 : turns.max / 1e6));
    turns.reset();
  });
  server.on("error", () => {});
  server.listen(path).unref();
}
