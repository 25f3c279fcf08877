import { argumentTrouble } from "../src/arguments.ts";
import { ExitCode } from "../src/io.ts";
import { processIo } from "../src/process-io.ts";
import { runProgram } from "../src/program.ts";
import { quoratectl } from "../src/quoratectl.ts";

const args = process.argv.slice(2);
const trouble = argumentTrouble(args);
if (trouble !== undefined) process.stderr.write(`Error: ${trouble}\n`);
process.exitCode =
  trouble === undefined ? await runProgram(quoratectl, args, processIo) : ExitCode.badArguments;
