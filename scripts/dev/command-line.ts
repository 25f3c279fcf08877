/**
 * The command line of a program that `./dev` starts: each option is declared once, and yargs makes
 * the parser, the help and the shell's completion of it. A mistake is one line, with exit code 2.
 */
import yargs, { type InferredOptionTypes, type Options } from "yargs";

export type { Options };

const VALUE = { type: "string", requiresArg: true } as const;

/** An option that takes a value. @param usual the value where it is not given */
export function valueOption(describe: string): typeof VALUE & { describe: string };
export function valueOption(
  describe: string,
  usual: string,
): typeof VALUE & { describe: string; default: string };
export function valueOption(describe: string, usual?: string) {
  return { ...VALUE, describe, ...(usual !== undefined && { default: usual }) };
}

/** An option that is off unless it is given. */
export function switchOption(describe: string) {
  return { type: "boolean", default: false, describe } as const;
}

/** Options under one heading of the help. */
export function inGroup<const O extends Readonly<Record<string, Options>>>(
  group: string,
  options: O,
): O {
  return Object.fromEntries(
    Object.entries(options).map(([name, option]) => [name, { ...option, group }]),
  ) as unknown as O;
}

/**
 * The values of `options`, and the other words of the command line. Ends the process with 0 after
 * --help, and with 2 for an option that there is not, or one that is given twice.
 * @param usage the command, a colon and one line about it; more lines may follow
 * @param words the name of the other words; without it there may be none
 */
export function readArguments<const O extends Readonly<Record<string, Options>>>(
  usage: string,
  options: O,
  words = "",
  args: readonly string[] = process.argv.slice(2),
): { readonly values: InferredOptionTypes<O>; readonly positionals: readonly string[] } {
  const [command = ""] = usage.split(/ \[|: /);
  const parser = yargs([...args])
    .scriptName(command)
    .usage(usage)
    .options(options)
    .version(false)
    .help()
    .alias("h", "help")
    .wrap(100)
    .strictOptions()
    .parserConfiguration({
      "boolean-negation": false,
      "camel-case-expansion": false,
      "dot-notation": false,
      "greedy-arrays": false,
      "parse-positional-numbers": false,
    })
    .fail((message, error) => refuse(message ?? error.message));
  const values = parser.parseSync();
  for (const [name, option] of Object.entries(options)) {
    const value = values[name];
    if (Array.isArray(value) && option.array !== true) refuse(`--${name} is given more than once`);
    if (value === "" && option.requiresArg === true && option.default !== "")
      refuse(`--${name} needs a value`);
  }
  const positionals = values._.map(String);
  if (words === "" && positionals.length > 0) refuse(`"${positionals[0]}" is no option`);
  return { values: values as unknown as InferredOptionTypes<O>, positionals };
}

/** What `read` makes of the command line. Ends the process with 2 where it throws. */
export function orRefuse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    return refuse((error as Error).message);
  }
}

/**
 * The number that was given for an option. Ends the process with 2 if it is none, or not above 0.
 */
export function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) refuse(`--${name} must be a number above 0, not "${text}"`);
  return value;
}

/** The same for a whole number. */
export function count(name: string, text: string): number {
  const value = positive(name, text);
  if (!Number.isInteger(value)) refuse(`--${name} must be a whole number, not "${text}"`);
  return value;
}

/** Ends the process: the command line makes no sense. */
export function refuse(message: string): never {
  console.error(`${message}; --help lists the options`);
  process.exit(2);
}
