/**
 * `./dev`: finds the command in the table (commands.ts) and runs it. The last run takes this
 * process's place, so its exit code, its signals and its terminal are those of the command.
 */
import { spawnSync } from "node:child_process";
import { constants } from "node:os";
import { delimiter, join } from "node:path";
import yargs, { type Argv } from "yargs";
import {
  type Command,
  commands,
  type Group,
  isGroup,
  isProgram,
  type Program,
  programSteps,
  ROOT,
  type Step,
  type Task,
} from "./commands.ts";

const NAME = "./dev";
const COMPLETE = "--get-yargs-completions";

/** Where the words of a command line lead. */
interface Found {
  readonly path: readonly string[];
  readonly command: Command;
  readonly rest: readonly string[];
}

function find(words: readonly string[]): Found {
  let command: Command = commands;
  const path: string[] = [];
  while (isGroup(command)) {
    const word: string | undefined = words[path.length];
    if (word === undefined || !Object.hasOwn(command.commands, word)) break;
    path.push(word);
    command = command.commands[word];
  }
  return { path, command, rest: words.slice(path.length) };
}

const asksForHelp = (words: readonly string[]): boolean =>
  words[0] === "--help" || words[0] === "-h";

/** Runs the steps; does not return where the last one could be started. */
function run(steps: readonly Step[]): void {
  const path = [join(ROOT, "node_modules/.bin"), process.env["PATH"] ?? ""].join(delimiter);
  process.chdir(ROOT);
  for (const [at, { args, env }] of steps.entries()) {
    const whole = { ...process.env, PATH: path, ...env };
    // As npm does it: with the command's own marks of a test run gone, a run inside a test reports
    // to its own output.
    if (at === steps.length - 1)
      process.execve!(process.execPath, [process.execPath, ...args], whole as NodeJS.ProcessEnv);
    const { status, signal } = spawnSync(process.execPath, args, { stdio: "inherit", env: whole });
    if (status === 0) continue;
    process.exitCode = status ?? 128 + constants.signals[signal!];
    return;
  }
}

/** The command line of a group or a task, for yargs. */
function declare(parser: Argv, group: Group): Argv {
  let declared = parser;
  for (const [name, command] of Object.entries(group.commands)) {
    const task = isGroup(command) || isProgram(command) ? undefined : command;
    const words = task?.words === undefined ? name : `${name} ${task.words}`;
    declared = declared.command(
      words,
      command.about,
      (inner) => {
        if (isGroup(command)) return declare(inner, command);
        return inner.options({ ...task?.options });
      },
      (values) => {
        if (task !== undefined) run(task.steps(values));
      },
    );
  }
  const least = group.otherwise === undefined ? 1 : 0;
  return declared.demandCommand(least, "a command is missing");
}

function parserOf(words: readonly string[]): Argv {
  const parser = yargs([...words])
    .scriptName(NAME)
    .usage(`${NAME} COMMAND [OPTIONS]: ${commands.about}`)
    .completion("completion", "prints a script for the shell's completion (bash, zsh)")
    .version(false)
    .help()
    .alias("h", "help")
    .wrap(100)
    .strict()
    .recommendCommands()
    .parserConfiguration({
      "boolean-negation": false,
      "camel-case-expansion": false,
      "dot-notation": false,
    })
    .fail((message, error) => {
      const text = message ?? error.message;
      const mistyped = text.startsWith("Did you mean")
        ? `${find(words).rest[0]} is no command. `
        : "";
      process.stderr.write(`${mistyped}${text}; ${NAME} --help lists the commands\n`);
      process.exit(2);
    });
  return declare(parser, commands);
}

/** The words of a program, with the program itself where a group has one for all other words. */
function programOf({ path, command, rest }: Found): [Program, readonly string[]] | undefined {
  if (isProgram(command)) return [command, rest];
  const inner = isGroup(command) && command.otherwise;
  if (!inner || path.length === 0) return undefined;
  const chosen = (command as Group).commands[inner];
  return isProgram(chosen) ? [chosen, rest] : undefined;
}

async function main(words: readonly string[]): Promise<void> {
  const isCompletion = words[0] === COMPLETE;
  // The shell's words begin with the name of this program.
  const found = find(isCompletion ? words.slice(2) : words);
  const { command, path, rest } = found;
  if (isProgram(command) && isCompletion)
    return run(programSteps(command, [COMPLETE, NAME, ...rest]));
  if (!isCompletion) {
    const chosen = programOf(found);
    const hasList = isGroup(command) && asksForHelp(rest);
    if (hasList && chosen !== undefined)
      process.stdout.write(`${await parserOf(path).getHelp()}\n\nOther words:\n\n`);
    if (chosen !== undefined) return run(programSteps(...chosen));
    if (isGroup(command) && command.otherwise !== undefined && rest.length === 0)
      return run((command.commands[command.otherwise] as Task).steps({}));
  }
  await parserOf(words).parseAsync();
}

await main(process.argv.slice(2));
