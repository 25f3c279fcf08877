/** What a shell has to know of a program to complete its command lines. */
import type { Program } from "../command.ts";
import { commandNodes } from "../tree.ts";

/** A word that may stand somewhere, with what help says of it. */
export interface Choice {
  readonly word: string;
  readonly doc: string;
}

/** A flag in the spellings that shells offer: "--name", and "-n" if it has a letter. */
export interface FlagChoice extends Choice {
  readonly spellings: readonly string[];
  readonly takesValue: boolean;
  /** What the value may be; empty if it may be anything, such as a path. */
  readonly values: readonly string[];
}

/** What may follow the commands of one path. */
export interface Place {
  /**
   * The names of the commands so far, each after a slash: "" for the program alone,
   * "/endpoint/status".
   */
  readonly key: string;
  readonly commands: readonly Choice[];
  readonly flags: readonly FlagChoice[];
  /** What an argument may be; empty if it may be anything. */
  readonly words: readonly string[];
}

/** All places of a program, the program alone first. */
export function placesOf(program: Program): Place[] {
  return commandNodes(program).map(({ path, names, commands, flags }) => ({
    key: names.map((name) => `/${name}`).join(""),
    commands: commands.map((command) => ({ word: command.use.split(" ")[0], doc: command.short })),
    flags: [...flags]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, flag]) => ({
        word: `--${name}`,
        doc: flag.doc,
        spellings: [`--${name}`, ...(flag.shorthand === undefined ? [] : [`-${flag.shorthand}`])],
        takesValue: flag.kind !== "bool",
        values: flag.values ?? [],
      })),
    words: path.at(-1)?.words?.(program) ?? [],
  }));
}
