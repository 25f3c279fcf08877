/**
 * Parses a watch from a command line or a line of interactive mode: its flags, keys, and a program
 * to run.
 */
import type { Flags } from "@quorate/cli";
import { badArguments, boolFlag, type Io, intFlag } from "@quorate/cli";

export const watchFlags: Flags = {
  interactive: boolFlag("read watches from standard input, one per line", "false", {
    shorthand: "i",
  }),
  prefix: boolFlag("all keys with the key as prefix"),
  rev: intFlag("first revision to print (0 for changes from now on)"),
  "prev-kv": boolFlag("print the previous record too"),
  "progress-notify": boolFlag("print the store's revision at intervals while nothing changes"),
};

/** The variables for the key and the range end. */
export interface WatchVariables {
  readonly key: string;
  readonly rangeEnd: string;
}

/** Reads ETCDCTL_WATCH_KEY and ETCDCTL_WATCH_RANGE_END. Throws Exit for an end without a key. */
export function watchVariables({ env }: Io): WatchVariables {
  const key = env["ETCDCTL_WATCH_KEY"] ?? "";
  const rangeEnd = env["ETCDCTL_WATCH_RANGE_END"] ?? "";
  if (key === "" && rangeEnd !== "") {
    throw badArguments(
      `ETCDCTL_WATCH_KEY is empty but got ETCDCTL_WATCH_RANGE_END=${JSON.stringify(rangeEnd)}`,
    );
  }
  return { key, rangeEnd };
}

/** A watch to open. */
export interface WatchPlan {
  readonly key: string;
  readonly rangeEnd: string | undefined;
  /** The program to run for each event; empty for none. */
  readonly exec: readonly string[];
}

/**
 * Separates the keys from the program to run, which follows "--".
 * @param dash number of arguments before "--"
 */
export function planWatch(
  args: readonly string[],
  dash: number | undefined,
  variables: WatchVariables,
): WatchPlan {
  const exec = dash === undefined ? [] : args.slice(dash);
  const keys = args.slice(0, dash);
  if (dash !== undefined && exec.length === 0) {
    throw badArguments("bad number of arguments (found separator --, but no commands)");
  }
  if (variables.key !== "" && keys.length > 0) {
    throw badArguments("bad number of arguments (found conflicting environment key)");
  }
  const [key, rangeEnd] =
    variables.key === ""
      ? keys
      : [variables.key, variables.rangeEnd === "" ? undefined : variables.rangeEnd];
  if (key === undefined) throw badArguments("bad number of arguments");
  // As in etcdctl, a third key discards the second.
  return { key, rangeEnd: keys.length > 2 ? undefined : rangeEnd, exec };
}
