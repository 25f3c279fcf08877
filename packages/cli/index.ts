/** The shell of a command line: flags, commands, help, tables, terminals. */
export { argumentTrouble } from "./src/arguments.ts";
export {
  type Command,
  type CommandBody,
  type CommandLine,
  type CommandNode,
  commandName,
  commandNodes,
  type Invocation,
  loadCommand,
  loadProgram,
  type Program,
  variableOf,
} from "./src/command.ts";
export { readCommandLine } from "./src/command-line.ts";
export {
  boolFlag,
  durationFlag,
  type Flag,
  FlagError,
  FlagRefusal,
  type Flags,
  FlagValues,
  intFlag,
  listFlag,
  parseBigInt64,
  parseBool,
  readFlags,
  textFlag,
  toSafeNumber,
} from "./src/flags.ts";
export {
  goJson,
  goUnquote,
  humanBytes,
  type JsonValue,
} from "./src/go-format.ts";
export { flagLines, helpText, shownDefault, shownKind, usageOf } from "./src/help.ts";
export {
  badArguments,
  type ChildEnd,
  Exit,
  ExitCode,
  type Io,
  LineReader,
  readAll,
  type StopSignal,
  stoppedBy,
  systemReason,
  type Terminal,
  untilStopped,
} from "./src/io.ts";
export { passwordPrompt } from "./src/password-prompt.ts";
export { processIo } from "./src/process-io.ts";
export { runProgram } from "./src/program.ts";
export { Progress } from "./src/progress.ts";
export { drawTable, type Table } from "./src/table.ts";
export { type Paint, painted, paintFor, plain, type Style } from "./src/terminal.ts";
