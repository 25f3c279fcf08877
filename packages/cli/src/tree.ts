/**
 * Lists a program's commands, for completion scripts and manual pages.
 */

import { type Command, commandName, flagsOf, type Program } from "./command.ts";
import type { Flag } from "./flags.ts";

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

/** The program and all of its commands, each before its subcommands, in the order of help. */
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
