import { argumentTrouble } from "../src/arguments.ts";
import { ExitCode } from "../src/io.ts";
import { processIo } from "../src/process-io.ts";
import { runProgram } from "../src/program.ts";
import { quorateutl } from "../src/quorateutl.ts";

// Stores that it makes are for their owner alone; LevelDB gives its files no mode of its own.
process.umask(0o077);
const args = process.argv.slice(2);
const trouble = argumentTrouble(args);
if (trouble !== undefined) process.stderr.write(`Error: ${trouble}\n`);
process.exitCode =
  trouble === undefined ? await runProgram(quorateutl, args, processIo) : ExitCode.badArguments;
