/**
 * What a program and its commands are: declarations, from which command lines are read and help,
 * completion and manual pages are made.
 */
import type { Flag, Flags, FlagValues } from "./flags.ts";
import type { Io } from "./io.ts";

/** A command line that was read. */
export interface CommandLine {
  readonly args: readonly string[];
  readonly flags: FlagValues;
  readonly io: Io;
  /** How many of the arguments stand before "--"; undefined if there is no "--". */
  readonly dash?: number | undefined;
}

/** What a command runs with. */
export interface Invocation extends CommandLine {
  /** The program that the command belongs to. */
  readonly program: Program;
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
  /** What an argument may be, where that is one of a few words; shells complete it. */
  readonly words?: (program: Program) => readonly string[];
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

const HELP: Flag = {
  kind: "bool",
  shorthand: "h",
  defaultText: "false",
  doc: "help for this command",
};

/** The name that a command is called by. */
export function commandName(command: Command): string {
  return command.use.split(" ")[0];
}

/** The environment variable of a flag, such as ETCDCTL_WRITE_OUT. */
export function variableOf(prefix: string, flag: string): string {
  return `${prefix}_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/**
 * The flags that may stand after the commands of `path`: those of every command first, "help" last.
 */
export function flagsOf(program: Program, path: readonly Command[]): Map<string, Flag> {
  const own = path.flatMap((command, depth) =>
    depth === path.length - 1 || command.inherits === true
      ? Object.entries(command.flags ?? {})
      : [],
  );
  return new Map([...Object.entries(program.globals), ...own, ["help", HELP]]);
}
