/** Runs a command line of `quorate operator`. */
import { processIo, runProgram } from "@quorate/cli";
import { operatorProgram } from "./program.ts";

/** Files are for the process's own user. */
const PRIVATE_UMASK = 0o077;

/** @param argv the arguments without the program's name */
export async function runOperatorCommand(argv: readonly string[]): Promise<void> {
  process.umask(PRIVATE_UMASK);
  process.exitCode = await runProgram(operatorProgram, argv, processIo);
}
