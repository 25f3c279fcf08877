import type { Command } from "../command.ts";
import { memberTimeoutFlag, noColorFlag } from "../observe/flags.ts";

export const topCommand: Command = {
  use: "top [options]",
  short: "Shows what the members of a cluster do, live",
  long: `Shows what the members of a cluster do, live. Beyond etcdctl's commands.

Who leads, rates of writes and reads and how they went in the last minutes, how far members are behind, sizes, 99th percentiles of
latencies since the look before, watchers, leases, memory and the delay of each member's event loop. Every member is shown, whatever part
of them --endpoints names, and all are asked side by side: one that is down or hangs holds up nothing. Its row is dimmed, says for how long
it has been silent, and keeps the figures of its last answer. What a member does not tell is shown as "-": an etcd member tells nothing of
loops. Figures that are worth a look are yellow, those that hurt are red.

Keys: q ends it, ? explains keys and columns, 1 to 4 choose a table, s and r sort, space asks at once, p holds the picture. In a pipe, or
with --once, one plain frame with all tables is printed, of the time of one --interval.`,
  flags: {
    interval: { kind: "duration", defaultText: "1s", doc: "time between two looks" },
    once: { kind: "bool", defaultText: "false", doc: "print one frame and end" },
    ...memberTimeoutFlag("1s"),
    ...noColorFlag,
  },
  async run(invocation) {
    const { runTop } = await import("../top/run.ts");
    await runTop(invocation);
  },
};
