/** The commands that start the bundles of programs which ./dev test has made. */
import { writeFileSync } from "node:fs";
import { bundledFile } from "../../scripts/release/checkout.ts";
import { releasePrograms } from "../../scripts/release/programs.ts";

/**
 * The command that starts a bundled program with the flags and variables of its file in bin/;
 * undefined outside of `./dev test` and where there is no bundle.
 */
export function bundledProgram(
  wanted: "quorate" | "quoratectl" | "quorateutl",
): readonly string[] | undefined {
  if (process.env["QUORATE_TEST_BUNDLE"] !== "1") return undefined;
  const program = bundledFile(wanted);
  if (program === undefined) return undefined;
  const { flags, variables } = releasePrograms().find(({ name }) => name === wanted)!;
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  return ["/usr/bin/env", ...settings, process.execPath, "--disable-sigusr1", ...flags, program];
}

/** Makes `file` a program that runs the command with its own arguments. */
export function writeProgram(file: string, command: readonly string[]): void {
  writeFileSync(file, `#!/bin/sh\nexec ${command.join(" ")} "$@"\n`, { mode: 0o755 });
}
