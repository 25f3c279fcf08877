/** Runs a command line of `quorate gateway` or `quorate grpc-proxy`. */
import { processIo, runProgram } from "@quorate/cli";
import { proxyProgram } from "./commands.ts";

/** Files are for the process's own user. */
const PRIVATE_UMASK = 0o077;

/** @param argv the arguments without the program's name */
export async function runProxyCommand(argv: readonly string[]): Promise<void> {
  process.umask(PRIVATE_UMASK);
  process.exitCode = await runProgram(proxyProgram, argv, processIo);
}
