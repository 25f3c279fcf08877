import type { FlagValues } from "../flags.ts";
import { Exit, ExitCode } from "../io.ts";

/** The flag of commands that can be answered by one member alone. */
export const consistencyFlag = {
  kind: "string",
  defaultText: "l",
  doc: "l for linearizable, s for serializable: quicker, but maybe behind",
  values: ["l", "s"],
} as const;

/** Whether --consistency asks for a serializable read. Throws Exit for anything but l and s. */
export function isSerializable(flags: FlagValues): boolean {
  const consistency = flags.string("consistency");
  if (consistency !== "l" && consistency !== "s")
    throw new Exit(ExitCode.badFeature, `unknown consistency flag ${JSON.stringify(consistency)}`);
  return consistency === "s";
}
