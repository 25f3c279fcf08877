/** The command lines: quoratectl talks to a running cluster, quorateutl works on the files of a stopped member. */
export { Exit, ExitCode, type Io } from "./src/io.ts";
export { type Command, type Program, runProgram } from "./src/program.ts";
export { quoratectl } from "./src/quoratectl.ts";
export { quorateutl } from "./src/quorateutl.ts";
