/** The commands about the program itself: help, the global flags, the version. */
import {
  type Command,
  commandName,
  Exit,
  ExitCode,
  flagLines,
  helpText,
  loadCommand,
} from "@quorate/cli";
import { apiVersion, programVersion } from "../connect/versions.ts";

export const helpCommand: Command = {
  use: "help [command]",
  short: "Prints the help of the program or of a command",
  words: (program) => program.groups.flatMap((group) => group.commands.map(commandName)),
  async run({ args, io, program }) {
    const path: Command[] = [];
    let choices: readonly Command[] = program.groups.flatMap((group) => group.commands);
    for (const word of args) {
      const next = choices.find((command) => commandName(command) === word);
      if (next === undefined) {
        const words = choices.map(commandName);
        const known = words.length === 0 ? "" : `; available topics: ${words.join(", ")}`;
        throw new Exit(
          ExitCode.error,
          `unknown help topic ${JSON.stringify(args.join(" "))}${known}`,
        );
      }
      const loaded = await loadCommand(next);
      path.push(loaded);
      choices = loaded.commands ?? [];
    }
    io.stdout(helpText(program, path));
  },
};

export const optionsCommand: Command = {
  use: "options",
  short: "Lists the global flags",
  run({ io, program }) {
    const lines = flagLines(new Map(Object.entries(program.globals)));
    io.stdout(
      `The following options can be passed to any command:\n\n${lines.map((line) => `${line}\n`).join("")}`,
    );
  },
};

/** The command that prints the version of a program. */
export function versionCommand(program: string): Command {
  return {
    use: "version",
    short: `Prints the version of ${program}`,
    run({ io }) {
      io.stdout(`${program} version: ${programVersion}\nAPI version: ${apiVersion}\n`);
    },
  };
}
