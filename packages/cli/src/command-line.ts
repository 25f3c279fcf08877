/**
 * Parses a command line as cobra, etcdctl's library, does: words that are neither flags nor flags'
 * values name the command; an unambiguous prefix is enough ("mem li" is "member list"). All flags
 * are then read as that command's, wherever they stand.
 */
import { CodedError, defined } from "@quorate/proto";
import {
  type Command,
  type CommandLine,
  commandName,
  flagsOf,
  loadCommand,
  type Program,
} from "./command.ts";
import { type Flag, FlagValues, readFlags } from "./flags.ts";

/** A word in the place of a command that names no command. */
export class UnknownCommand extends CodedError<"UnknownCommand"> {
  constructor(program: Program, path: readonly Command[], word: string) {
    const names = path.map(commandName);
    const elsewhere = program.elsewhere?.get([...names, word].join(" "));
    const similar =
      elsewhere === undefined ? similarCommands(choicesAfter(program, path), word) : [elsewhere];
    const lines = similar.map((name) => `\t${name}\n`);
    const hint = lines.length === 0 ? "" : `\n\nDid you mean this?\n${lines.join("")}`;
    super(
      "UnknownCommand",
      "UnknownCommand",
      `unknown command ${JSON.stringify(word)} for ${JSON.stringify([program.name, ...names].join(" "))}${hint}`,
    );
  }
}

/**
 * Appends the named commands to `path`, loaded, even if it then rejects with FlagError or
 * UnknownCommand.
 */
export async function readCommandLine(
  program: Program,
  argv: readonly string[],
  path: Command[],
): Promise<Omit<CommandLine, "io">> {
  let words = argv;
  for (;;) {
    const at = commandIndex(words, flagsOf(program, path));
    const word = words[at];
    if (word === undefined) break;
    const next = commandCalled(word, choicesAfter(program, path));
    if (next === undefined && isRefused(path, words, word))
      throw new UnknownCommand(program, path, word);
    if (next === undefined) break;
    path.push(await loadCommand(next));
    words = words.toSpliced(at, 1);
  }
  const known = flagsOf(program, path);
  const flags = new FlagValues(known);
  const args: string[] = [];
  let dash: number | undefined;
  readFlags(words, {
    flags: known,
    flag: (name, text, shown) => flags.set(name, text, shown),
    argument: (text) => args.push(text),
    dashes() {
      dash = args.length;
    },
  });
  return { flags, args, dash };
}

/**
 * Whether a word that names no command is an error: at the top, and in a group of commands, where
 * etcdctl prints the group's help and succeeds.
 */
function isRefused(path: readonly Command[], words: readonly string[], word: string): boolean {
  const group = path.at(-1);
  if (group === undefined) return true;
  if (word === "help" || words.includes("--help") || words.includes("-h")) return false;
  return group.run === undefined;
}

function choicesAfter(program: Program, path: readonly Command[]): readonly Command[] {
  return path.length === 0
    ? program.groups.flatMap((group) => group.commands)
    : (defined(path.at(-1), "an element of path").commands ?? []);
}

/**
 * The index of the word that names the next command, or -1: the first word that is neither a flag
 * nor the value of one. An unknown flag is taken to have a value.
 */
function commandIndex(words: readonly string[], flags: ReadonlyMap<string, Flag>): number {
  let isValue = false;
  for (const [at, word] of words.entries()) {
    if (isValue) {
      isValue = false;
      continue;
    }
    if (word === "--") return -1;
    isValue = word.startsWith("--")
      ? !word.includes("=") && !isBool(flags.get(word.slice(2)))
      : isLoneShort(word, flags);
    if (!isValue && word !== "" && !word.startsWith("-")) return at;
  }
  return -1;
}

function isLoneShort(word: string, flags: ReadonlyMap<string, Flag>): boolean {
  return (
    word.length === 2 &&
    word[0] === "-" &&
    ![...flags.values()].some((flag) => flag.shorthand === word[1] && isBool(flag))
  );
}

function isBool(flag: Flag | undefined): boolean {
  return flag?.kind === "bool";
}

/** The command of that name, or else the only one whose name has that prefix. */
export function commandCalled(word: string, choices: readonly Command[]): Command | undefined {
  const exact = choices.find((command) => commandName(command) === word);
  if (exact !== undefined) return exact;
  const beginning = choices.filter((command) => commandName(command).startsWith(word));
  return beginning.length === 1 ? beginning[0] : undefined;
}

/** The largest edit distance of a suggested name. */
const MAX_TYPOS = 2;

/** The commands to suggest for a word that names none. */
function similarCommands(choices: readonly Command[], word: string): string[] {
  const names = choices.map(commandName);
  const typed = word.toLowerCase();
  return names
    .filter((name) => name.startsWith(typed) || distance(typed, name) <= MAX_TYPOS)
    .sort();
}

/** The Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, char] of a.split("").entries()) {
    let left = i + 1;
    let corner = i;
    row = row.map((above, j) => {
      if (j > 0) left = Math.min(left + 1, above + 1, corner + (char === b[j - 1] ? 0 : 1));
      corner = above;
      return left;
    });
  }
  return row.at(-1) ?? 0;
}
