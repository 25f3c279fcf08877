import type { FlagValues } from "@quorate/cli";
import { Exit, ExitCode, textFlag } from "@quorate/cli";

/** The flag of commands that one member can serve alone. */
export const consistencyFlag = textFlag(
  "l for linearizable, s for serializable (faster, possibly stale)",
  "l",
  { values: ["l", "s"] },
);

/** Whether --consistency selects a serializable read. Throws Exit for anything but l and s. */
export function isSerializable(flags: FlagValues): boolean {
  const consistency = flags.string("consistency");
  if (consistency !== "l" && consistency !== "s")
    throw new Exit(ExitCode.badFeature, `unknown consistency flag ${JSON.stringify(consistency)}`);
  return consistency === "s";
}
