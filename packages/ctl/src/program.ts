/** A program with commands: finding the command, reading flags and variables, help, errors and exit codes. */
import { type Flag, FlagError, type Flags, FlagValues, readFlags } from "./flags.ts";
import { Exit, ExitCode, type Io } from "./io.ts";

/** What a command runs with. */
export interface Invocation {
  readonly args: readonly string[];
  readonly flags: FlagValues;
  readonly io: Io;
}

/** A command: either it has subcommands, or it runs. */
export interface Command {
  /** The name, then what comes after it, such as "get [options] <key> [range_end]". */
  readonly use: string;
  readonly short: string;
  /** In place of `short` in the command's own help. */
  readonly long?: string;
  readonly flags?: Flags;
  /** True if subcommands take the flags as well. */
  readonly inherits?: boolean;
  readonly commands?: readonly Command[];
  readonly run?: (invocation: Invocation) => Promise<void> | void;
}

/** A whole program. */
export interface Program {
  readonly name: string;
  readonly short: string;
  /** Commands under titles, in the order of help. */
  readonly groups: readonly { readonly title: string; readonly commands: readonly Command[] }[];
  /** Flags of every command. */
  readonly globals: Flags;
  /** Before the names of environment variables, such as "ETCDCTL"; undefined if there are none. */
  readonly envPrefix?: string;
  /** Variables with the prefix that are no flags and not to be warned of. */
  readonly otherVariables?: ReadonlySet<string>;
}

const HELP: Flag = { kind: "bool", shorthand: "h", defaultText: "false", doc: "help for this command" };

export function commandName(command: Command): string {
  return command.use.split(" ")[0]!;
}

/** Runs a command line (without the program's name) and gives the exit code. Errors are printed; only mistakes in the program throw. */
export async function runProgram(program: Program, argv: readonly string[], io: Io): Promise<number> {
  const path: Command[] = [];
  try {
    const { flags, args } = readCommandLine(program, argv, path);
    const command = path.at(-1);
    if (flags.bool("help") || command?.run === undefined) {
      if (command === undefined && args.length > 0 && !flags.bool("help")) {
        io.stderr(
          `Error: unknown command ${JSON.stringify(args[0])} for ${JSON.stringify(program.name)}\n` +
            `Run '${program.name} --help' for usage.\n`,
        );
        return ExitCode.error;
      }
      io.stdout(command === undefined ? programHelp(program) : commandHelp(program, path));
      return ExitCode.success;
    }
    applyVariables(program, path, flags, io);
    await command.run({ args, flags, io });
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

/** The flags that may stand after the commands of `path`. */
function flagsOf(program: Program, path: readonly Command[]): Map<string, Flag> {
  const own = path.flatMap((command, depth) =>
    depth === path.length - 1 || command.inherits === true ? Object.entries(command.flags ?? {}) : [],
  );
  return new Map([...Object.entries(program.globals), ...own, ["help", HELP]]);
}

/** Fills `path` with the commands that are named, even if it then throws FlagError. */
function readCommandLine(program: Program, argv: readonly string[], path: Command[]): { flags: FlagValues; args: readonly string[] } {
  const given: { name: string; text: string; shown: string }[] = [];
  const args: string[] = [];
  readFlags(argv, {
    get flags() {
      return flagsOf(program, path);
    },
    flag: (name, text, shown) => given.push({ name, text, shown }),
    argument(text) {
      const choices = path.length === 0 ? program.groups.flatMap((group) => group.commands) : (path.at(-1)!.commands ?? []);
      const next = args.length > 0 ? undefined : choices.find((command) => commandName(command) === text);
      if (next === undefined) args.push(text);
      else path.push(next);
    },
  });
  const flags = new FlagValues(flagsOf(program, path));
  for (const { name, text, shown } of given) flags.set(name, text, shown);
  return { flags, args };
}

/** Sets inherited flags from variables. A variable beside its flag is refused, as etcdctl does. */
function applyVariables(program: Program, path: readonly Command[], flags: FlagValues, io: Io): void {
  const prefix = program.envPrefix;
  if (prefix === undefined) return;
  const inherited = [...Object.keys(program.globals), ...path.slice(0, -1).flatMap((command) => Object.keys(command.flags ?? {}))];
  const byVariable = new Map(inherited.map((name) => [`${prefix}_${name.toUpperCase().replaceAll("-", "_")}`, name]));
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

function programHelp(program: Program): string {
  const lines = [program.short, "", "Usage:", `  ${program.name} [command]`];
  const width = Math.max(...program.groups.flatMap((group) => group.commands.map((command) => commandName(command).length))) + 2;
  for (const group of program.groups) {
    lines.push("", `${group.title}:`);
    for (const command of group.commands) lines.push(`  ${commandName(command).padEnd(width)}${command.short}`);
  }
  lines.push("", "Global flags:", ...flagLines(new Map([...Object.entries(program.globals), ["help", HELP]])));
  if (program.envPrefix !== undefined) {
    lines.push("", `A global flag can be set by a variable as well: --dial-timeout is ${program.envPrefix}_DIAL_TIMEOUT.`);
  }
  lines.push("", `Use "${program.name} [command] --help" for more about a command.`, "");
  return lines.join("\n");
}

function commandHelp(program: Program, path: readonly Command[]): string {
  const command = path.at(-1)!;
  const words = [program.name, ...path.slice(0, -1).map(commandName)].join(" ");
  const lines = [(command.long ?? command.short).trimEnd(), "", "Usage:", `  ${words} ${command.use}`];
  const commands = command.commands ?? [];
  if (commands.length > 0) {
    const width = Math.max(...commands.map((one) => commandName(one).length)) + 2;
    lines.push("", "Commands:", ...commands.map((one) => `  ${commandName(one).padEnd(width)}${one.short}`));
  }
  const own = new Map([...flagsOf(program, path)].filter(([name]) => !(name in program.globals)));
  lines.push("", "Flags:", ...flagLines(own));
  lines.push("", `Use "${program.name} --help" for the flags that every command takes.`, "");
  return lines.join("\n");
}

function flagLines(flags: ReadonlyMap<string, Flag>): string[] {
  const rows = [...flags]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, flag]) => {
      const letter = flag.shorthand === undefined ? "    " : `-${flag.shorthand}, `;
      const kind = flag.kind === "bool" ? "" : ` ${flag.kind}`;
      const isZero = ["", "0", "false", "0s"].includes(flag.defaultText);
      const shown =
        flag.kind === "string" ? JSON.stringify(flag.defaultText) : flag.kind === "strings" ? `[${flag.defaultText}]` : flag.defaultText;
      return { left: `  ${letter}--${name}${kind}`, right: flag.doc + (isZero ? "" : ` (default ${shown})`) };
    });
  const width = Math.max(...rows.map((row) => row.left.length)) + 3;
  return rows.map((row) => row.left.padEnd(width) + row.right);
}
