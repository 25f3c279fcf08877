/**
 * The command lines: quoratectl talks to a running cluster, quorateutl works on the files of a
 * stopped member.
 */
export {
  type Command,
  commandName,
  type Invocation,
  type Program,
  variableOf,
} from "./src/command.ts";
export { discoverEndpoints, type LookupSrv } from "./src/discovery.ts";
export type { Flag, Flags, FlagValues } from "./src/flags.ts";
export { shownDefault, usageOf } from "./src/help.ts";
export { type ChildEnd, Exit, ExitCode, type Io, type StopSignal } from "./src/io.ts";
export { passwordPrompt } from "./src/password-prompt.ts";
export { processIo } from "./src/process-io.ts";
export { runProgram } from "./src/program.ts";
export { quoratectl } from "./src/quoratectl.ts";
export { quorateutl } from "./src/quorateutl.ts";
export { type CommandNode, commandNodes } from "./src/tree.ts";
