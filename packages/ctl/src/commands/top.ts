import type { CommandBody } from "@quorate/cli";
import { boolFlag, durationFlag } from "@quorate/cli";
import { memberTimeoutFlag, noColorFlag } from "../observe/flags.ts";

export const topCommand: CommandBody = {
  long: `Shows the activity of a cluster's members, live. Not in etcdctl.

The leader, write and read rates with their recent history, replication lag, sizes, 99th percentiles
of latencies since the last refresh, watchers, leases, memory and the delay of each member's event
loop. All members are shown, even those that --endpoints does not name, and polled concurrently: one
that is down does not delay the others. Its row is dimmed, shows how long it has been silent, and
keeps its last figures. "-" is a figure that a member does not export: etcd members have no event
loop. Warnings are yellow, problems red.

Keys: q quits, ? explains keys and columns, 1 to 4 select a table, s and r sort, space refreshes,
p pauses. In a pipe, or with --once, it prints one plain frame with all tables, over one --interval.`,
  flags: {
    interval: durationFlag("time between refreshes", "1s"),
    once: boolFlag("print one frame and exit"),
    ...memberTimeoutFlag("1s"),
    ...noColorFlag,
  },
  async run(invocation) {
    const { runTop } = await import("../top/run.ts");
    await runTop(invocation);
  },
};
