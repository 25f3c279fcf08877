import type { Flags } from "../flags.ts";
import { withClient } from "../globals.ts";
import { Exit, ExitCode, type Io } from "../io.ts";
import { printerOf } from "../printers/choose.ts";
import type { Command } from "../program.ts";

export const watchFlags: Flags = {
  interactive: { kind: "bool", shorthand: "i", defaultText: "false", doc: "read watches from standard input, one a line" },
  prefix: { kind: "bool", defaultText: "false", doc: "all keys that begin with the key" },
  rev: { kind: "int", defaultText: "0", doc: "first revision to print (0 for what changes from now on)" },
  "prev-kv": { kind: "bool", defaultText: "false", doc: "print what the key held before as well" },
  "progress-notify": { kind: "bool", defaultText: "false", doc: "print the store's revision from time to time while nothing changes" },
};

/** The variables that stand for the key and the range's end. */
export interface WatchVariables {
  readonly key: string;
  readonly rangeEnd: string;
}

/** Reads ETCDCTL_WATCH_KEY and ETCDCTL_WATCH_RANGE_END. Throws Exit for an end without a key. */
export function watchVariables({ env }: Io): WatchVariables {
  const key = env["ETCDCTL_WATCH_KEY"] ?? "";
  const rangeEnd = env["ETCDCTL_WATCH_RANGE_END"] ?? "";
  if (key === "" && rangeEnd !== "") {
    throw new Exit(ExitCode.badArguments, `ETCDCTL_WATCH_KEY is empty but got ETCDCTL_WATCH_RANGE_END=${JSON.stringify(rangeEnd)}`);
  }
  return { key, rangeEnd };
}

/** What a command line, or a line of interactive mode, asks for. */
export interface WatchPlan {
  readonly key: string;
  readonly rangeEnd: string | undefined;
  /** The program to run for each event; empty for none. */
  readonly exec: readonly string[];
}

/**
 * Tells the keys from the program to run, which stands after "--".
 * @param dash how many arguments stand before "--"
 */
export function planWatch(args: readonly string[], dash: number | undefined, variables: WatchVariables): WatchPlan {
  const exec = dash === undefined ? [] : args.slice(dash);
  const keys = args.slice(0, dash);
  if (dash !== undefined && exec.length === 0) {
    throw new Exit(ExitCode.badArguments, "bad number of arguments (found separator --, but no commands)");
  }
  if (variables.key !== "" && keys.length > 0) {
    throw new Exit(ExitCode.badArguments, "bad number of arguments (found conflicting environment key)");
  }
  const [key, rangeEnd] = variables.key === "" ? keys : [variables.key, variables.rangeEnd === "" ? undefined : variables.rangeEnd];
  if (key === undefined) throw new Exit(ExitCode.badArguments, "bad number of arguments");
  // As in etcdctl, a third key has the second forgotten.
  return { key, rangeEnd: keys.length > 2 ? undefined : rangeEnd, exec };
}

export const watchCommand: Command = {
  use: "watch [options] [key or prefix] [range_end] [--] [exec-command arg1 arg2 ...]",
  short: "Prints changes of a key or a range of keys as they happen",
  long: `Prints changes of a key or a range of keys as they happen, until it is stopped (Ctrl-C).

If its member goes away it goes on at another, without missing or repeating a change.

The key and the range's end can be given as ETCDCTL_WATCH_KEY and ETCDCTL_WATCH_RANGE_END instead. A program after "--" is run for each
event, with ETCD_WATCH_REVISION, ETCD_WATCH_EVENT_TYPE, ETCD_WATCH_KEY and ETCD_WATCH_VALUE in its environment (the last three quoted).

With -i it reads lines such as
  watch [options] <key or prefix> [range_end] [--] [exec-command arg1 arg2 ...]
  progress
from standard input: the second has each watch print the revision up to which it has told everything.`,
  flags: watchFlags,
  async run(invocation) {
    const { args, flags, io, dash } = invocation;
    const variables = watchVariables(io);
    const isInteractive = flags.bool("interactive");
    const plan = isInteractive ? undefined : planWatch(args, dash, variables);
    const printer = printerOf(invocation);
    const { watchInteractively, watchPlan } = await import("../watching.ts");
    await withClient(invocation, async ({ client }) => {
      if (plan === undefined) await watchInteractively(client, printer, io, variables);
      else await watchPlan(client, printer, io, plan, flags);
    });
    throw new Exit(ExitCode.interrupted, "watch is canceled by the server");
  },
};
