/**
 * A program's commands one after the other: what completion scripts and manual pages are made from.
 */

import { type Command, commandName, flagsOf, type Program } from "./command.ts";
import type { Flag } from "./flags.ts";

/** One place of the tree: the program itself, or a command. */
export interface CommandNode {
  /** The commands that lead here, the last being this one; empty for the program. */
  readonly path: readonly Command[];
  /** Their names. */
  readonly names: readonly string[];
  /** The commands that may follow. */
  readonly commands: readonly Command[];
  /** Every flag that may stand here, with the program's own. */
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
