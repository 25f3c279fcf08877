import type { Command } from "@quorate/cli";
import { apiVersion, programVersion } from "../connect/versions.ts";

/** The command that prints the version of a program. */
export function versionCommand(program: string): Command {
  return {
    use: "version",
    short: `Prints the version of ${program}`,
    run({ io }) {
      io.stdout(`${program} version: ${programVersion}\nAPI version: ${apiVersion}\n`);
    },
  };
}
