/** The facts about a program that completion scripts need. */
import type { Program } from "@quorate/cli";
import { commandName, commandNodes } from "@quorate/cli";

/** A word to offer, with its help text. */
export interface Choice {
  readonly word: string;
  readonly doc: string;
}

/** A flag in the spellings that shells offer: "--name", and "-n" if it has a letter. */
export interface FlagChoice extends Choice {
  readonly spellings: readonly string[];
  readonly takesValue: boolean;
  /** The possible values; empty for any value, such as a path. */
  readonly values: readonly string[];
}

/** The words that may follow the commands of one path. */
export interface CommandPosition {
  /**
   * The names of the commands so far, each after a slash: "" for the program alone,
   * "/endpoint/status".
   */
  readonly key: string;
  readonly commands: readonly Choice[];
  readonly flags: readonly FlagChoice[];
  /** The possible arguments; empty for any argument. */
  readonly words: readonly string[];
}

/** The positions of a program's commands, the program itself first. */
export function positionsOf(program: Program): CommandPosition[] {
  return commandNodes(program).map(({ path, names, commands, flags }) => ({
    key: names.map((name) => `/${name}`).join(""),
    commands: commands.map((command) => ({ word: commandName(command), doc: command.short })),
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
