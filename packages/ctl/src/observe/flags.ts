/** Flags of the commands that examine every member. */
import type { Flags, FlagValues } from "@quorate/cli";
import { badArguments, boolFlag, durationFlag } from "@quorate/cli";

/** @param defaultText default timeout per member */
export function memberTimeoutFlag(defaultText: string): Flags {
  return {
    "member-timeout": durationFlag(
      "timeout of each request to a member (--command-timeout if only that is set)",
      defaultText,
    ),
  };
}

export const noColorFlag: Flags = {
  "no-color": boolFlag("no colours (like the variable NO_COLOR)"),
};

/** The timeout of a request to a member, in milliseconds. Throws Exit if it is not above 0. */
export function memberTimeoutMs(flags: FlagValues): number {
  const name =
    flags.isSet("command-timeout") && !flags.isSet("member-timeout")
      ? "command-timeout"
      : "member-timeout";
  const timeoutMs = flags.durationMs(name);
  if (!(timeoutMs > 0)) throw badArguments(`--${name} must be more than 0`);
  return timeoutMs;
}
