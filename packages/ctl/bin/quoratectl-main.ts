import { processIo } from "../src/process-io.ts";
import { runProgram } from "../src/program.ts";
import { quoratectl } from "../src/quoratectl.ts";

process.exitCode = await runProgram(quoratectl, process.argv.slice(2), processIo);
