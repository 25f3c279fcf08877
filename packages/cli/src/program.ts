/**
 * Runs a program with commands: finds the command, parses flags and variables, prints help and
 * errors.
 */
import { type Command, commandName, flagsOf, type Program, variableOf } from "./command.ts";
import { readCommandLine, UnknownCommand } from "./command-line.ts";
import { FlagError, type FlagValues } from "./flags.ts";
import { helpText } from "./help.ts";
import { Exit, ExitCode, type Io } from "./io.ts";

export type { Command, CommandLine, Invocation, Program } from "./command.ts";

/**
 * Runs a command line (without the program's name) and returns the exit code. Prints errors; throws
 * only for bugs.
 */
export async function runProgram(
  program: Program,
  argv: readonly string[],
  io: Io,
): Promise<number> {
  const path: Command[] = [];
  try {
    const { flags, args, dash } = await readCommandLine(program, argv, path);
    const command = path.at(-1);
    if (flags.bool("help") || command?.run === undefined) {
      io.stdout(helpText(program, path));
      return ExitCode.success;
    }
    const missing = [...flagsOf(program, path)].filter(
      ([name, flag]) => flag.required === true && !flags.isSet(name),
    );
    if (missing.length > 0) {
      const names = missing.map(([name]) => JSON.stringify(name)).sort();
      throw new FlagError(`required flag(s) ${names.join(", ")} not set`);
    }
    applyVariables(program, path, flags, io);
    await command.run({ args, flags, io, program, dash });
    return ExitCode.success;
  } catch (error) {
    if (error instanceof Exit) {
      if (error.message !== "") io.stderr(`Error: ${error.message}\n`);
      const hint = io.stderrIsTerminal ? program.usageHint?.(error.message) : undefined;
      if (hint !== undefined) io.stderr(`Hint: ${hint}\n`);
      return error.code;
    }
    if (error instanceof FlagError || error instanceof UnknownCommand) {
      io.stderr(
        `Error: ${error.message}\nRun '${[program.name, ...path.map(commandName)].join(" ")} --help' for usage.\n`,
      );
      return ExitCode.error;
    }
    throw error;
  }
}

/** Sets global flags from variables. Refuses a variable beside its flag, as etcdctl does. */
function applyVariables(
  program: Program,
  path: readonly Command[],
  flags: FlagValues,
  io: Io,
): void {
  const prefix = program.envPrefix;
  if (prefix === undefined) return;
  const inherited = [
    ...Object.keys(program.globals),
    ...path.slice(0, -1).flatMap((command) => Object.keys(command.flags ?? {})),
  ];
  const byVariable = new Map(inherited.map((name) => [variableOf(prefix, name), name]));
  for (const variable of Object.keys(io.env).sort()) {
    const text = io.env[variable];
    if (!variable.startsWith(`${prefix}_`) || text === undefined || text === "") continue;
    const name = byVariable.get(variable);
    if (name === undefined) {
      if (program.otherVariables?.has(variable) !== true)
        io.stderr(`Warning: unrecognized environment variable ${variable}\n`);
    } else if (flags.isSet(name)) {
      throw new Exit(
        ExitCode.error,
        `conflicting environment variable ${JSON.stringify(variable)} is shadowed by corresponding command-line flag ` +
          "(either unset environment variable or disable flag)",
      );
    } else {
      try {
        flags.set(name, text);
      } catch (error) {
        throw new Exit(
          ExitCode.error,
          `invalid value ${JSON.stringify(text)} for ${variable}: ${(error as Error).message}`,
        );
      }
    }
  }
}
