import { processIo } from "../src/process-io.ts";
import { runProgram } from "../src/program.ts";
import { quorateutl } from "../src/quorateutl.ts";

process.exitCode = await runProgram(quorateutl, process.argv.slice(2), processIo);
