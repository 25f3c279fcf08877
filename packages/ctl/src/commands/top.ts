import type { Command } from "../command.ts";

export const topCommand: Command = {
  use: "top [options]",
  short: "Shows what the members of a cluster do, live",
  long: `Shows what the members of a cluster do, live. Beyond etcdctl's commands.

Who leads, rates of puts, ranges and transactions, how far members are behind, sizes, 99th percentiles of latencies since the frame
before, watchers, leases, memory and the delay of each member's event loop. Every member is shown, whatever part of them --endpoints
names. What a member does not tell is shown as "-": an etcd member tells nothing of loops.

The key q ends it, the space bar asks at once. In a pipe, or with --once, one plain frame is printed, of the time of one --interval.`,
  flags: {
    interval: { kind: "duration", defaultText: "1s", doc: "time between two frames" },
    once: { kind: "bool", defaultText: "false", doc: "print one frame and end" },
  },
  async run(invocation) {
    const { runTop } = await import("../top/run.ts");
    await runTop(invocation);
  },
};
