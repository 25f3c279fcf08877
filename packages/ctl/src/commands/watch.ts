import type { CommandBody } from "@quorate/cli";
import { Exit, ExitCode } from "@quorate/cli";
import { withClient } from "../connect/globals.ts";
import { planWatch, watchFlags, watchVariables } from "../connect/watch-plan.ts";
import { printerOf } from "../printers/choose.ts";

export const watchCommand: CommandBody = {
  long: `Prints changes of a key or a range of keys as they happen, until stopped (Ctrl-C).

If its member fails, the watch continues at another one without missing or repeating a change. The
key and range end can come from ETCDCTL_WATCH_KEY and ETCDCTL_WATCH_RANGE_END instead. A program
after "--" runs for each event, with ETCD_WATCH_REVISION, ETCD_WATCH_EVENT_TYPE, ETCD_WATCH_KEY and
ETCD_WATCH_VALUE in its environment (the last three quoted).

With -i it reads lines such as
  watch [options] <key or prefix> [range_end] [--] [exec-command arg1 arg2 ...]
  progress
from standard input; "progress" makes each watch print the revision up to which it is complete.`,
  flags: watchFlags,
  async run(invocation) {
    const { args, flags, io, dash } = invocation;
    const variables = watchVariables(io);
    const isInteractive = flags.bool("interactive");
    const plan = isInteractive ? undefined : planWatch(args, dash, variables);
    const printer = printerOf(invocation);
    const { watchInteractively, watchPlan } = await import("./watching.ts");
    await withClient(invocation, async ({ client }) => {
      if (plan === undefined) await watchInteractively(client, printer, io, variables);
      else await watchPlan(client, printer, io, plan, flags);
    });
    throw new Exit(ExitCode.interrupted, "watch is canceled by the server");
  },
};
