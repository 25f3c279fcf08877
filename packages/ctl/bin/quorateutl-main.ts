import { argumentTrouble, ExitCode, processIo, runProgram } from "@quorate/cli";
import { quorateutl } from "../src/quorateutl.ts";

// Only the owner may read the stores it makes; LevelDB sets no mode on its files.
process.umask(0o077);
const args = process.argv.slice(2);
const trouble = argumentTrouble(args);
if (trouble !== undefined) process.stderr.write(`Error: ${trouble}\n`);
process.exitCode =
  trouble === undefined ? await runProgram(quorateutl, args, processIo) : ExitCode.badArguments;
