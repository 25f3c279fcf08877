/** Flags of the commands that look at every member. */
import type { Flags, FlagValues } from "../flags.ts";
import { Exit, ExitCode } from "../io.ts";

/** @param defaultText how long a member has to answer unless told */
export function memberTimeoutFlag(defaultText: string): Flags {
  return {
    "member-timeout": {
      kind: "duration",
      defaultText,
      doc: "how long each member has to answer each question (--command-timeout if only that is given)",
    },
  };
}

export const noColorFlag: Flags = {
  "no-color": {
    kind: "bool",
    defaultText: "false",
    doc: "no colours (as with the variable NO_COLOR)",
  },
};

/** How long a member has to answer, in milliseconds. Throws Exit for none. */
export function memberTimeoutMs(flags: FlagValues): number {
  const name =
    flags.isSet("command-timeout") && !flags.isSet("member-timeout")
      ? "command-timeout"
      : "member-timeout";
  const timeoutMs = flags.durationMs(name);
  if (!(timeoutMs > 0)) throw new Exit(ExitCode.badArguments, `--${name} must be more than 0`);
  return timeoutMs;
}
