import { type Command, commandName, Exit, ExitCode, helpText } from "@quorate/cli";

export const helpCommand: Command = {
  use: "help [command]",
  short: "Prints the help of the program or of a command",
  words: (program) => program.groups.flatMap((group) => group.commands.map(commandName)),
  run({ args, io, program }) {
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
      path.push(next);
      choices = next.commands ?? [];
    }
    io.stdout(helpText(program, path));
  },
};
