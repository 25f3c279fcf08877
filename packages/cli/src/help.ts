/**
 * The texts of --help, from the declarations: description, usage, commands, flags, global flags.
 */

import { defined } from "@quorate/proto";
import { type Command, commandName, flagsOf, type Program, variableOf } from "./command.ts";
import type { Flag } from "./flags.ts";

/** Lines wrap before this column. */
const WIDTH = 130;

/** The help of the command at `path`, or of the program if it is empty. */
export function helpText(program: Program, path: readonly Command[]): string {
  const lines = path.length === 0 ? programHelp(program) : commandHelp(program, path);
  return `${lines.join("\n")}\n`;
}

function programHelp(program: Program): string[] {
  const lines = [program.short, "", "Usage:", `  ${program.name} [command]`];
  const width = columnOf(program.groups.flatMap((group) => group.commands));
  for (const { title, commands } of program.groups)
    lines.push("", `${title}:`, ...commandLines(commands, width));
  lines.push("", "Global flags:", ...flagLines(flagsOf(program, [])), ...variableLines(program));
  lines.push("", `Use "${program.name} [command] --help" for more about a command.`);
  return lines;
}

function commandHelp(program: Program, path: readonly Command[]): string[] {
  const command = defined(path.at(-1), "the command");
  const lines = [
    (command.long ?? command.short).trimEnd(),
    "",
    "Usage:",
    `  ${usageOf(program, path)}`,
  ];
  const commands = command.commands ?? [];
  if (commands.length > 0)
    lines.push("", "Commands:", ...commandLines(commands, columnOf(commands)));
  const own = new Map([...flagsOf(program, path)].filter(([name]) => !(name in program.globals)));
  lines.push("", "Flags:", ...flagLines(own));
  const globals = new Map(Object.entries(program.globals));
  if (globals.size > 0)
    lines.push("", "Global flags:", ...flagLines(globals), ...variableLines(program));
  if (commands.length > 0) {
    lines.push(
      "",
      `Use "${[program.name, ...path.map(commandName)].join(" ")} [command] --help" for more about a command.`,
    );
  }
  return lines;
}

/** The usage line of a command, from the program's name on. */
export function usageOf(program: Program, path: readonly Command[]): string {
  return [
    program.name,
    ...path.slice(0, -1).map(commandName),
    defined(path.at(-1), "an element of path").use,
  ].join(" ");
}

/** The paragraph about environment variables; empty if the program has none. */
function variableLines({ envPrefix, globals }: Program): string[] {
  if (envPrefix === undefined) return [];
  const example =
    Object.keys(globals).find((name) => name.includes("-")) ?? Object.keys(globals)[0];
  return example === undefined
    ? []
    : [
        "",
        `A global flag can also be set by a variable: --${example} is ${variableOf(envPrefix, example)}.`,
      ];
}

function columnOf(commands: readonly Command[]): number {
  return Math.max(...commands.map((command) => commandName(command).length)) + 2;
}

function commandLines(commands: readonly Command[], width: number): string[] {
  return commands.flatMap((command) =>
    rowLines(`  ${commandName(command).padEnd(width)}`, command.short),
  );
}

/** The default as help shows it; undefined for an empty, zero or false default. */
export function shownDefault({ kind, defaultText }: Flag): string | undefined {
  if (["", "0", "false", "0s"].includes(defaultText)) return undefined;
  return kind === "string"
    ? JSON.stringify(defaultText)
    : kind === "strings"
      ? `[${defaultText}]`
      : defaultText;
}

/** The kind of a flag's value as help shows it behind the name. */
export function shownKind({ kind, bareText }: Flag): string {
  if (kind === "bool") return "";
  return bareText === undefined ? ` ${kind}` : `[=${kind}]`;
}

/** Flags in the order of their names. */
export function flagLines(flags: ReadonlyMap<string, Flag>): string[] {
  const rows = [...flags]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, flag]) => {
      const letter = flag.shorthand === undefined ? "    " : `-${flag.shorthand}, `;
      const kind = shownKind(flag);
      const shown = shownDefault(flag);
      return {
        left: `  ${letter}--${name}${kind}`,
        right: flag.doc + (shown === undefined ? "" : ` (default ${shown})`),
      };
    });
  const width = Math.max(...rows.map((row) => row.left.length)) + 3;
  return rows.flatMap((row) => rowLines(row.left.padEnd(width), row.right));
}

/** A row whose text wraps below itself. */
function rowLines(left: string, text: string): string[] {
  const columns = Math.max(WIDTH - left.length, 40);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines.map((one, index) => (index === 0 ? left : " ".repeat(left.length)) + one);
}
