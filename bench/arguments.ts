/**
 * The command line of a program of bench/: --help prints its help, and an error is one line, with
 * exit code 2.
 */
import { type ParseArgsConfig, parseArgs } from "node:util";

/**
 * The values of `options`, and what else stands on the command line, if `allowPositionals` says
 * that something may. Ends the process with 0 for --help, and with 2 for an option that there is
 * not.
 */
export function readArguments<const O extends NonNullable<ParseArgsConfig["options"]>>(
  help: string,
  options: O,
  { allowPositionals = false }: { allowPositionals?: boolean } = {},
) {
  if (process.argv.slice(2).some((text) => text === "--help" || text === "-h")) {
    console.log(help.trimEnd());
    process.exit(0);
  }
  return orRefuse(() => parseArgs({ options, allowPositionals }));
}

/** What `read` makes of the command line. Ends the process with 2 where it throws. */
export function orRefuse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    // parseArgs goes on about arguments that begin with "-", of which there are none here.
    return refuse((error as Error).message.split(". To specify")[0]);
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
