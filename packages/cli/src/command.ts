/**
 * Declarations of programs and commands. The parser, help, completion and manual pages derive from
 * them.
 */
import type { Flag, Flags, FlagValues } from "./flags.ts";
import { boolFlag } from "./flags.ts";
import type { Io } from "./io.ts";

/** A parsed command line. */
export interface CommandLine {
  readonly args: readonly string[];
  readonly flags: FlagValues;
  readonly io: Io;
  /** The number of arguments before "--"; undefined without "--". */
  readonly dash?: number | undefined;
}

/** The argument of a command's run(). */
export interface Invocation extends CommandLine {
  /** The program that the command belongs to. */
  readonly program: Program;
}

/** A command without what its parent's help says of it: either subcommands or run(). */
export interface CommandBody {
  /** In place of `short` in the command's own help. */
  readonly long?: string;
  readonly flags?: Flags;
  /** True if subcommands take the flags as well. */
  readonly inherits?: boolean;
  readonly commands?: readonly Command[];
  /** The possible arguments, where they are a few words; shells complete them. */
  readonly words?: (program: Program) => readonly string[];
  readonly run?: (invocation: Invocation) => Promise<void> | void;
}

/** A command. The rest of one with `load` is loaded when it, or its help, is asked for. */
export interface Command extends CommandBody {
  /** The name and the arguments, such as "get [options] <key> [range_end]". */
  readonly use: string;
  readonly short: string;
  readonly load?: () => Promise<CommandBody>;
}

/** A whole program. */
export interface Program {
  readonly name: string;
  readonly short: string;
  /** Commands under titles, in the order of help. */
  readonly groups: readonly { readonly title: string; readonly commands: readonly Command[] }[];
  /** Flags of every command. */
  readonly globals: Flags;
  /** The prefix of environment variables, such as "ETCDCTL"; undefined if there are none. */
  readonly envPrefix?: string;
  /** Variables with the prefix that are no flags and cause no warning. */
  readonly otherVariables?: ReadonlySet<string>;
  /** What to try after a usage error, for a person at a terminal; undefined for nothing. */
  usageHint?(message: string): string | undefined;
  /** What another program has in place of a command, such as "snapshot restore". */
  readonly elsewhere?: ReadonlyMap<string, string>;
}

const HELP: Flag = boolFlag("help for this command", "false", { shorthand: "h" });

/** The name that a command is called by. */
export function commandName(command: Command): string {
  const [name = ""] = command.use.split(" ", 1);
  return name;
}

/** A command with all that is loaded of it later. */
export async function loadCommand(command: Command): Promise<Command> {
  const { use, short, load } = command;
  return load === undefined ? command : { use, short, ...(await load()) };
}

/** A program with all that is loaded of its commands later, for who looks at all of them. */
export async function loadProgram(program: Program): Promise<Program> {
  const groups = program.groups.map(async ({ title, commands }) => ({
    title,
    commands: await Promise.all(commands.map(loadCommand)),
  }));
  return { ...program, groups: await Promise.all(groups) };
}

/** The environment variable of a flag, such as ETCDCTL_WRITE_OUT. */
export function variableOf(prefix: string, flag: string): string {
  return `${prefix}_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/**
 * The flags of the command at `path`: the global flags first, "help" last.
 */
export function flagsOf(program: Program, path: readonly Command[]): Map<string, Flag> {
  const own = path.flatMap((command, depth) =>
    depth === path.length - 1 || command.inherits === true
      ? Object.entries(command.flags ?? {})
      : [],
  );
  return new Map([...Object.entries(program.globals), ...own, ["help", HELP]]);
}

/** A node of the tree: the program or a command. */
export interface CommandNode {
  /** The path from the program to this command; empty for the program. */
  readonly path: readonly Command[];
  /** Their names. */
  readonly names: readonly string[];
  /** The subcommands. */
  readonly commands: readonly Command[];
  /** All flags of this command, global ones included. */
  readonly flags: ReadonlyMap<string, Flag>;
}

/** A loaded program and all of its commands, each before its subcommands, in the order of help. */
export function commandNodes(program: Program): CommandNode[] {
  const nodeOf = (path: readonly Command[], commands: readonly Command[]): CommandNode[] => [
    { path, names: path.map(commandName), commands, flags: flagsOf(program, path) },
    ...commands.flatMap((command) => nodeOf([...path, command], command.commands ?? [])),
  ];
  return nodeOf(
    [],
    program.groups.flatMap((group) => group.commands),
  );
}
