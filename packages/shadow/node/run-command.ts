/** Runs a command line of `quorate shadow`. */
import { processIo, runProgram } from "@quorate/cli";
import { shadowProgram } from "./program.ts";

/** Files are for the process's own user. */
const PRIVATE_UMASK = 0o077;

/** @param argv the arguments without the program's name */
export async function runShadowCommand(argv: readonly string[]): Promise<void> {
  process.umask(PRIVATE_UMASK);
  process.exitCode = await runProgram(shadowProgram, argv, processIo);
}
