/**
 * Reading a command line as etcdctl's library (cobra) does: the words that are neither flags nor
 * flags' values name the command, which may be shortened as long as it is the only one ("mem li" is
 * "member list"); then all flags are read as that command's, wherever they stand.
 */
import { type Command, type CommandLine, commandName, flagsOf, type Program } from "./command.ts";
import { type Flag, FlagValues, readFlags } from "./flags.ts";

/** A word that should name a command and names none. */
export class UnknownCommand extends Error {
  constructor(program: Program, word: string) {
    const similar = similarCommands(program, word).map((name) => `\t${name}\n`);
    const hint = similar.length === 0 ? "" : `\n\nDid you mean this?\n${similar.join("")}`;
    super(`unknown command ${JSON.stringify(word)} for ${JSON.stringify(program.name)}${hint}`);
    this.name = "UnknownCommand";
  }
}

/**
 * Fills `path` with the commands that are named, even if it then throws FlagError or
 * UnknownCommand.
 */
export function readCommandLine(
  program: Program,
  argv: readonly string[],
  path: Command[],
): Omit<CommandLine, "io"> {
  let words = argv;
  for (;;) {
    const at = commandIndex(words, flagsOf(program, path));
    const next = at < 0 ? undefined : commandCalled(words[at], choicesAfter(program, path));
    if (next === undefined && at >= 0 && path.length === 0)
      throw new UnknownCommand(program, words[at]);
    if (next === undefined) break;
    path.push(next);
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

function choicesAfter(program: Program, path: readonly Command[]): readonly Command[] {
  return path.length === 0
    ? program.groups.flatMap((group) => group.commands)
    : (path.at(-1)!.commands ?? []);
}

/**
 * Where the next command is named, or -1: the first word that is neither a flag nor what follows
 * one that takes a value or is unknown.
 */
function commandIndex(words: readonly string[], flags: ReadonlyMap<string, Flag>): number {
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (word === "--") return -1;
    if (
      word.startsWith("--")
        ? !word.includes("=") && !isBool(flags.get(word.slice(2)))
        : isLoneShort(word, flags)
    )
      at++;
    else if (word !== "" && !word.startsWith("-")) return at;
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

/** The command of that name, or else the only one whose name begins so. */
export function commandCalled(word: string, choices: readonly Command[]): Command | undefined {
  const exact = choices.find((command) => commandName(command) === word);
  if (exact !== undefined) return exact;
  const beginning = choices.filter((command) => commandName(command).startsWith(word));
  return beginning.length === 1 ? beginning[0] : undefined;
}

/** The most letters by which a name may differ from what was typed to be meant by it. */
const MAX_TYPOS = 2;

/** The program's commands that may have been meant by a word that is none. */
function similarCommands(program: Program, word: string): string[] {
  const names = choicesAfter(program, []).map(commandName);
  const typed = word.toLowerCase();
  return names
    .filter((name) => name.startsWith(typed) || distance(typed, name) <= MAX_TYPOS)
    .sort();
}

/** How many letters must be put in, left out or changed to make one word of the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(
        Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)),
      );
    }
    row = next;
  }
  return row[b.length];
}
