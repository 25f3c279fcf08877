import { argumentTrouble, ExitCode, processIo, runProgram } from "@quorate/cli";
import { quoratectl } from "../src/quoratectl.ts";

const args = process.argv.slice(2);
const trouble = argumentTrouble(args);
if (trouble !== undefined) process.stderr.write(`Error: ${trouble}\n`);
process.exitCode =
  trouble === undefined ? await runProgram(quoratectl, args, processIo) : ExitCode.badArguments;
