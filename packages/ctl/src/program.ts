/** A program with commands: finding the command, reading flags and variables, help, errors and exit codes. */
import { type Command, type CommandLine, commandName, flagsOf, type Program, variableOf } from "./command.ts";
import { FlagError, FlagValues, readFlags } from "./flags.ts";
import { helpText } from "./help.ts";
import { Exit, ExitCode, type Io } from "./io.ts";

export type { Command, CommandLine, Invocation, Program } from "./command.ts";

/** Runs a command line (without the program's name) and gives the exit code. Errors are printed; only mistakes in the program throw. */
export async function runProgram(program: Program, argv: readonly string[], io: Io): Promise<number> {
  const path: Command[] = [];
  try {
    const { flags, args, dash } = readCommandLine(program, argv, path);
    const command = path.at(-1);
    if (flags.bool("help") || command?.run === undefined) {
      if (command === undefined && args.length > 0 && !flags.bool("help")) {
        io.stderr(
          `Error: unknown command ${JSON.stringify(args[0])} for ${JSON.stringify(program.name)}\n` +
            `Run '${program.name} --help' for usage.\n`,
        );
        return ExitCode.error;
      }
      io.stdout(helpText(program, path));
      return ExitCode.success;
    }
    applyVariables(program, path, flags, io);
    await command.run({ args, flags, io, dash, program });
    return ExitCode.success;
  } catch (error) {
    if (error instanceof Exit) {
      if (error.message !== "") io.stderr(`Error: ${error.message}\n`);
      return error.code;
    }
    if (error instanceof FlagError) {
      io.stderr(`Error: ${error.message}\nRun '${[program.name, ...path.map(commandName)].join(" ")} --help' for usage.\n`);
      return ExitCode.error;
    }
    throw error;
  }
}

/** Fills `path` with the commands that are named, even if it then throws FlagError. */
function readCommandLine(program: Program, argv: readonly string[], path: Command[]): Omit<CommandLine, "io"> {
  const given: { name: string; text: string; shown: string }[] = [];
  const args: string[] = [];
  let dash: number | undefined;
  readFlags(argv, {
    get flags() {
      return flagsOf(program, path);
    },
    flag: (name, text, shown) => given.push({ name, text, shown }),
    dashes() {
      dash = args.length;
    },
    argument(text) {
      const choices = path.length === 0 ? program.groups.flatMap((group) => group.commands) : (path.at(-1)!.commands ?? []);
      const next = args.length > 0 || dash !== undefined ? undefined : choose(choices, text);
      if (next === undefined) args.push(text);
      else path.push(next);
    },
  });
  const flags = new FlagValues(flagsOf(program, path));
  for (const { name, text, shown } of given) flags.set(name, text, shown);
  return { flags, args, dash };
}

/** Sets inherited flags from variables. A variable beside its flag is refused, as etcdctl does. */
function applyVariables(program: Program, path: readonly Command[], flags: FlagValues, io: Io): void {
  const prefix = program.envPrefix;
  if (prefix === undefined) return;
  const inherited = [...Object.keys(program.globals), ...path.slice(0, -1).flatMap((command) => Object.keys(command.flags ?? {}))];
  const byVariable = new Map(inherited.map((name) => [variableOf(prefix, name), name]));
  for (const variable of Object.keys(io.env).sort()) {
    const text = io.env[variable];
    if (!variable.startsWith(`${prefix}_`) || text === undefined || text === "") continue;
    const name = byVariable.get(variable);
    if (name === undefined) {
      if (program.otherVariables?.has(variable) !== true) io.stderr(`Warning: unrecognized environment variable ${variable}\n`);
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
        throw new Exit(ExitCode.error, `invalid value ${JSON.stringify(text)} for ${variable}: ${(error as Error).message}`);
      }
    }
  }
}

/** The command of this name, or the only one whose name begins so, as etcdctl finds them; undefined if there is none. */
function choose(choices: readonly Command[], text: string): Command | undefined {
  const exact = choices.find((command) => commandName(command) === text);
  if (exact !== undefined || text === "") return exact;
  const matching = choices.filter((command) => commandName(command).startsWith(text));
  return matching.length === 1 ? matching[0] : undefined;
}
